package rest

import (
	"encoding/csv"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/recordings"
)

// An access describes the requests of one client for media in one format, within an hour.
type access struct {
	Actor    string            `json:"actor"`
	Address  string            `json:"address"`
	Format   recordings.Format `json:"format"`
	Requests int64             `json:"requests"`
	Bytes    int64             `json:"bytes"`
	FirstAt  time.Time         `json:"first_at"`
	LastAt   time.Time         `json:"last_at"`
}

// listAccesses serves GET /api/relay/rest/recordings/{id}/accesses, the latest first.
func (a *API) listAccesses(w http.ResponseWriter, r *http.Request, o recordings.Owner) error {
	asked, err := web.ReadPage(r.URL.Query())
	if err != nil {
		return err
	}

	found, err := a.c.Recordings.ListAccesses(r.Context(), o.ProjectID, r.PathValue("id"), asked.Query)
	if err != nil {
		return err
	}

	return web.AnswerPage(w, r, asked, found, func(c recordings.Access) access {
		return access{
			Actor:    c.Actor,
			Address:  c.Address,
			Format:   c.Format,
			Requests: c.Requests,
			Bytes:    c.Bytes,
			FirstAt:  seconds(c.First),
			LastAt:   seconds(c.Last),
		}
	})
}

// maxUsageDays is the maximum number of days in a usage report.
const maxUsageDays = 3660

// A dayUsage is the usage of one day, or the total of all days.
type dayUsage struct {
	Day        string  `json:"day,omitempty"`
	Recordings int64   `json:"recordings"`
	Seconds    int64   `json:"seconds"`
	Bytes      int64   `json:"bytes"`
	Stored     int64   `json:"stored_bytes"`
	Price      float64 `json:"price"`
}

// describeUsage returns the document for the usage of one day, or of all days.
func describeUsage(u recordings.Usage) dayUsage {
	d := dayUsage{
		Recordings: u.Recordings,
		Seconds:    u.Seconds,
		Bytes:      u.Bytes,
		Stored:     u.Stored,
		Price:      float64(u.Price) / 1e6,
	}
	if !u.Day.IsZero() {
		d.Day = u.Day.Format(time.DateOnly)
	}
	return d
}

// usage serves GET /api/relay/rest/recordings/usage, as JSON or CSV.
func (a *API) usage(w http.ResponseWriter, r *http.Request, o recordings.Owner) error {
	q := r.URL.Query()
	from, badFrom := parseTime("from", q.Get("from"))
	before, badBefore := parseTime("before", q.Get("before"))
	if err := errors.Join(badFrom, badBefore); err != nil {
		return err
	}
	if before.IsZero() {
		before = time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 1)
	}
	if from.IsZero() {
		from = before.AddDate(0, 0, -30)
	}

	from = from.UTC().Truncate(24 * time.Hour)
	before = before.UTC().Truncate(24 * time.Hour)
	if days := before.Sub(from) / (24 * time.Hour); days < 1 || days > maxUsageDays {
		return problem.BadParam("from", "from must be 1 to %d days before the end", maxUsageDays)
	}

	usage, err := a.c.Recordings.Usage(r.Context(), o.ProjectID, from, before)
	if err != nil {
		return err
	}
	switch q.Get("format") {
	case "", "json":
		days := make([]dayUsage, len(usage))
		for i, u := range usage {
			days[i] = describeUsage(u)
		}
		terms, stored, err := a.c.Recordings.Stored(r.Context(), o.ProjectID)
		if err != nil {
			return err
		}
		return web.JSON(w, http.StatusOK, map[string]any{
			"from":            from.Format(time.DateOnly),
			"before":          before.Format(time.DateOnly),
			"days":            days,
			"total":           describeUsage(recordings.SumUsage(usage)),
			"price_unit":      "USD",
			"recording_quota": terms.Quota,
			"quota_used":      stored,
			"upload_rate":     terms.UploadRate,
		})
	case "csv":
		return writeUsageCSV(w, usage)
	}
	return problem.BadParam("format", "format must be json or csv")
}

// writeUsageCSV writes the usage of each day as a table.
func writeUsageCSV(w http.ResponseWriter, usage []recordings.Usage) error {
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="usage.csv"`)
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	rows := [][]string{{"day", "recordings", "seconds", "bytes", "stored_bytes", "price_usd"}}
	for _, u := range usage {
		rows = append(rows, []string{
			u.Day.Format(time.DateOnly),
			number(u.Recordings),
			number(u.Seconds),
			number(u.Bytes),
			number(u.Stored),
			strconv.FormatFloat(float64(u.Price)/1e6, 'f', 6, 64),
		})
	}
	return csv.NewWriter(w).WriteAll(rows)
}
