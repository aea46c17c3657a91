package dashboard

import (
	"cmp"
	"encoding/csv"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/recordings"
)

// usageDays returns the usage of each of the last 30 days, and the first of these days.
func (a *recordingPages) usageDays(v *visit) (days []recordings.Usage, first time.Time, err error) {
	if a.Recordings == nil {
		return nil, time.Time{}, problem.NoSuch("page")
	}
	today := v.now.UTC().Truncate(24 * time.Hour)
	first = today.AddDate(0, 0, 1-chartDays)
	found, err := a.Recordings.Usage(v.r.Context(), v.project.ID, first, today.AddDate(0, 0, 1))
	if err != nil {
		return nil, time.Time{}, err
	}

	days = make([]recordings.Usage, chartDays)
	for i := range days {
		days[i].Day = first.AddDate(0, 0, i)
	}
	for _, usage := range found {
		i := int(usage.Day.Sub(first) / (24 * time.Hour))
		if i >= 0 && i < len(days) {
			days[i] = usage
		}
	}
	return days, first, nil
}

// A usageRow is a row in the table of usage.
type usageRow struct {
	Day        string
	Recordings string
	Minutes    string
	Uploaded   string
	Stored     string
	Price      string
}

// newUsageRow formats the usage of one or more days in the visitor's language.
func newUsageRow(v *visit, u recordings.Usage) usageRow {
	w := v.words()
	return usageRow{
		Recordings: w.Number(thousands(u.Recordings)),
		Minutes:    w.Number(thousands(minutesOf(u))),
		Uploaded:   cmp.Or(v.size(u.Bytes), "0 B"),
		Stored:     cmp.Or(v.size(u.Stored), "0 B"),
		Price:      w.Number(dollars(u, 4) + " USD"),
	}
}

// minutesOf returns the recorded minutes, rounded.
func minutesOf(u recordings.Usage) int64 { return (u.Seconds + 30) / 60 }

// dollars formats the price, which is in millionths of a dollar, with the given number of decimals.
func dollars(u recordings.Usage, decimals int) string {
	return strconv.FormatFloat(float64(u.Price)/1e6, 'f', decimals, 64)
}

// A usagePage shows the usage of the last days.
type usagePage struct {
	Base   string
	Total  usageRow
	Quota  string // the stored bytes, and the quota if there is one
	Charts []chart
	Rows   []usageRow // newest first
}

// showUsage serves GET /dashboard/projects/{project}/recordings/usage.
func (a *recordingPages) showUsage(v *visit) error {
	days, first, err := a.usageDays(v)
	if err != nil {
		return err
	}
	terms, stored, err := a.Recordings.Stored(v.r.Context(), v.project.ID)
	if err != nil {
		return err
	}

	p := usagePage{
		Base:  v.base(),
		Total: newUsageRow(v, recordings.SumUsage(days)),
		Quota: cmp.Or(v.size(stored), "0 B"),
	}
	if terms.Quota > 0 {
		p.Quota = words.Textf("%s of %s", p.Quota, v.size(terms.Quota))
	}
	p.Charts = usageCharts(v.words(), days, first)
	for _, usage := range slices.Backward(days) {
		row := newUsageRow(v, usage)
		row.Day = v.words().Format(usage.Day, "2 Jan 2006")
		p.Rows = append(p.Rows, row)
	}
	return a.page(v, http.StatusOK, "Usage", "recording_usage", p)
}

// usageCharts returns charts of the usage on consecutive days. first is the first of these days.
func usageCharts(w *words.Words, days []recordings.Usage, first time.Time) []chart {
	stored := make([]int64, len(days))
	minutes := make([]int64, len(days))
	megabytes := make([]int64, len(days))
	for i, usage := range days {
		stored[i] = usage.Recordings
		minutes[i] = minutesOf(usage)
		megabytes[i] = (usage.Bytes + 5e5) / 1e6
	}
	return []chart{
		chartOf(w, "Recordings", stored, first),
		chartOf(w, "Minutes", minutes, first),
		chartOf(w, "Megabytes", megabytes, first),
	}
}

// exportUsage serves GET /dashboard/projects/{project}/recordings/usage/export, as CSV.
func (a *recordingPages) exportUsage(v *visit) error {
	days, _, err := a.usageDays(v)
	if err != nil {
		return err
	}

	web.NoStore(v.w)
	v.w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	v.w.Header().Set("Content-Disposition", `attachment; filename="usage.csv"`)
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	rows := [][]string{{"day", "recordings", "seconds", "bytes", "stored_bytes", "price_usd"}}
	for _, usage := range days {
		rows = append(rows, []string{
			usage.Day.Format(time.DateOnly),
			number(usage.Recordings),
			number(usage.Seconds),
			number(usage.Bytes),
			number(usage.Stored),
			dollars(usage, 6),
		})
	}
	_ = csv.NewWriter(v.w).WriteAll(rows) // the browser may have disconnected
	return nil
}
