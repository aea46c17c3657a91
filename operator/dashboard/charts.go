package dashboard

import (
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/words"
)

// A chart shows one count for each of the last days.
type chart struct {
	Title string
	Today string // today's count
	Span  string // the sum of all days
	Since string // describes the period that Span covers
	Bars  []bar
}

// A bar is one day in a chart. Its numbers are in the units of the drawing.
type bar struct {
	X, Y, High int
	Text       string // the day and its count
}

// A chartDay is a row of the table with the numbers of all charts.
type chartDay struct {
	Day    string
	Counts []int64
}

// These are the number of days in a chart, and its dimensions in the units of the drawing.
const (
	chartDays = 30
	barStep   = 5 // distance between the left edges of two bars; a bar is one unit narrower than this
	chartHigh = 40
)

// counted lists the counts that a home page shows as charts.
var counted = []struct {
	what  fabric.Counted
	title string
}{
	{fabric.CountedSignIns, "Sign-ins"},
	{fabric.CountedActive, "Active subscribers"},
	{fabric.CountedTokens, "Tokens"},
	{fabric.CountedCalls, "Ended calls"},
	{fabric.CountedRecordings, "Recordings"},
}

// charts returns the charts of a project, and their numbers by day, newest first.
func (a *projectPages) charts(v *visit) (charts []chart, days []chartDay, err error) {
	if a.Counts == nil {
		return nil, nil, nil
	}
	today := v.now.UTC().Truncate(24 * time.Hour)
	first := today.AddDate(0, 0, 1-chartDays)
	month := today.AddDate(0, 0, 1-today.Day()) // on the 31st, this is before first
	from := first
	if month.Before(first) {
		from = month
	}
	counts, err := a.Counts(v.r.Context(), v.project.ID, from)
	if err != nil {
		return nil, nil, err
	}

	byDay := make(map[fabric.Counted]*[chartDays]int64) // the counts of each day
	for _, one := range counted {
		byDay[one.what] = new([chartDays]int64)
	}
	monthly := int64(0)
	for _, count := range counts {
		if count.Of == fabric.CountedMonthly && !count.Day.Before(month) {
			monthly += count.N
		}
		i := int(count.Day.Sub(first) / (24 * time.Hour))
		if i >= 0 && i < chartDays && byDay[count.Of] != nil {
			byDay[count.Of][i] = count.N
		}
	}

	days = make([]chartDay, chartDays)
	for i := range days {
		days[i].Day = v.words().Format(today.AddDate(0, 0, -i), "2 Jan 2006")
	}

	for _, one := range counted {
		numbers := byDay[one.what]
		c := chartOf(v.words(), one.title, numbers[:], first)
		if one.what == fabric.CountedActive { // adding up the days would count people more than once
			c.Span = v.words().Number(thousands(monthly))
			c.Since = "this month"
		}
		charts = append(charts, c)
		for i := range days {
			days[i].Counts = append(days[i].Counts, numbers[chartDays-1-i])
		}
	}
	return charts, days, nil
}

// chartOf returns a chart of the counts of consecutive days. first is the first of these days.
func chartOf(w *words.Words, title string, counts []int64, first time.Time) chart {
	most, sum := int64(1), int64(0)
	for _, count := range counts {
		most = max(most, count)
		sum += count
	}

	c := chart{
		Title: title,
		Today: w.Number(thousands(counts[len(counts)-1])),
		Span:  w.Number(thousands(sum)),
		Since: "in 30 days",
	}
	for i, count := range counts {
		high := int(count * chartHigh / most)
		if count > 0 {
			high = max(high, 2) // still visible
		}
		day := w.Format(first.AddDate(0, 0, i), "2 Jan")
		c.Bars = append(c.Bars, bar{
			X:    i * barStep,
			Y:    chartHigh - high,
			High: high,
			Text: words.Textf("%s: %s", day, w.Number(thousands(count))),
		})
	}
	return c
}
