package rest

import (
	"encoding/csv"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/recordings/levels"
)

// changing calls h unless the caller is a subscriber. Subscribers may not change recordings.
func changing(h ownedHandler) ownedHandler {
	return func(w http.ResponseWriter, r *http.Request, o recordings.Owner) error {
		if err := o.MayChange(); err != nil {
			return err
		}
		return h(w, r, o)
	}
}

// marks are the members of a body that change the marks of recordings.
type marks struct {
	Hold  *string   `json:"hold"`
	Tags  *[]string `json:"tags"`
	Tag   []string  `json:"tag"`
	Untag []string  `json:"untag"`
}

func (m marks) input() recordings.MarkInput {
	return recordings.MarkInput{Hold: m.Hold, Tags: m.Tags, Tag: m.Tag, Untag: m.Untag}
}

// mark serves PATCH /api/relay/rest/recordings/{id}.
func (a *API) mark(w http.ResponseWriter, r *http.Request, o recordings.Owner) error {
	in, err := web.Decode[marks](r)
	if err != nil {
		return err
	}
	rec, err := a.c.Recordings.Mark(r.Context(), o.ProjectID, r.PathValue("id"), in.input())
	if err != nil {
		return err
	}
	url, err := a.c.MediaURLs(r, o)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, describe(rec, url(rec)))
}

// A selection holds the members of a body that select recordings.
type selection struct {
	Tag           string  `json:"tag"`
	Held          bool    `json:"held"`
	CallID        string  `json:"call_id"`
	ConferenceID  string  `json:"conference_id"`
	Party         string  `json:"party"`
	Direction     string  `json:"direction"`
	Flag          string  `json:"flag"`
	CreatedFrom   string  `json:"created_from"`
	CreatedBefore string  `json:"created_before"`
	Longer        float64 `json:"longer"`
	Shorter       float64 `json:"shorter"`
	SubscriberID  string  `json:"subscriber_id"`
}

func (s selection) filter(projectID string) (recordings.Filter, error) {
	f := recordings.Filter{
		Owner: recordings.Owner{ProjectID: projectID, SubscriberID: s.SubscriberID}, Tag: s.Tag, Held: s.Held,
		CallSid: s.CallID, ConferenceSid: s.ConferenceID, Party: s.Party, Direction: s.Direction,
		DurationFrom: inSeconds(s.Longer), DurationBefore: inSeconds(s.Shorter),
	}
	var errs []error
	if s.Tag != "" {
		errs = append(errs, recordings.CheckTag("filter", s.Tag))
	}
	if s.Flag != "" {
		var ok bool
		if f.Flag, ok = levels.FlagOf(s.Flag); !ok {
			errs = append(errs, problem.BadParam("filter",
				"flag must be one of %s", strings.Join(levels.FlagNames(), ", ")))
		}
	}
	var err error
	if f.CreatedFrom, err = parseTime("created_from", s.CreatedFrom); err != nil {
		errs = append(errs, err)
	}
	if f.CreatedBefore, err = parseTime("created_before", s.CreatedBefore); err != nil {
		errs = append(errs, err)
	}
	return f, errors.Join(errs...)
}

// inSeconds returns a number of seconds as a duration, or 0 if it is out of range.
func inSeconds(s float64) time.Duration {
	if !(s > 0 && s < 1e9) {
		return 0
	}
	return time.Duration(math.Round(s*1000)) * time.Millisecond
}

// parseTime parses a day, or a time as in RFC 3339. "" is the zero time.
func parseTime(param, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if at, err := time.Parse(layout, text); err == nil && at.Year() >= 1970 && at.Year() < 10_000 {
			return at, nil
		}
	}
	return time.Time{}, problem.BadParam(param, "%s must be a date like 2026-11-20 or 2026-11-20T10:11:12Z", param)
}

// bulk serves POST /api/relay/rest/recordings/bulk.
func (a *API) bulk(w http.ResponseWriter, r *http.Request, o recordings.Owner) error {
	in, err := web.Decode[struct {
		Filter selection `json:"filter"`
		Action string    `json:"action"`
		Hold   *string   `json:"hold"`
		Tag    []string  `json:"tag"`
		Untag  []string  `json:"untag"`
		DryRun bool      `json:"dry_run"`
		Expect *int64    `json:"expect"`
	}](r)
	if err != nil {
		return err
	}
	b := recordings.Bulk{Delete: in.Action == "delete", DryRun: in.DryRun, Expect: -1,
		Mark: recordings.MarkInput{Hold: in.Hold, Tag: in.Tag, Untag: in.Untag}}
	if b.Filter, err = in.Filter.filter(o.ProjectID); err != nil {
		return err
	}
	switch {
	case in.Action != "delete" && in.Action != "mark":
		return problem.BadParam("action", "action must be delete or mark")
	case in.Expect != nil:
		b.Expect = *in.Expect
	case !in.DryRun:
		return problem.BadParam("expect", "expect must be the number that a request with dry_run returned as matched")
	}

	sum, err := a.c.Recordings.Change(r.Context(), b)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, map[string]int64{"matched": sum.Matched, "bytes": sum.Bytes,
		"changed": sum.Changed, "refused": sum.Refused})
}

// A rule is a retention rule.
type rule struct {
	ID           string    `json:"id"`
	Tag          *string   `json:"tag"`
	SubscriberID *string   `json:"subscriber_id"`
	Days         int       `json:"days"`
	CreatedAt    time.Time `json:"created_at"`
}

func showRule(u recordings.Rule) rule {
	return rule{u.ID, optional(u.Tag), optional(u.SubscriberID), u.Days, seconds(u.Created)}
}

// optional returns nil for the empty string, so that JSON shows null.
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// listRules serves GET /api/relay/rest/recordings/retention, oldest first.
func (a *API) listRules(w http.ResponseWriter, r *http.Request, o recordings.Owner) error {
	all, err := a.c.Recordings.Rules(r.Context(), o.ProjectID)
	if err != nil {
		return err
	}
	shown := make([]rule, len(all))
	for i, u := range all {
		shown[i] = showRule(u)
	}
	return web.JSON(w, http.StatusOK, map[string]any{"data": shown})
}

// addRule serves POST /api/relay/rest/recordings/retention.
func (a *API) addRule(w http.ResponseWriter, r *http.Request, o recordings.Owner) error {
	in, err := web.Decode[struct {
		Tag          string `json:"tag"`
		SubscriberID string `json:"subscriber_id"`
		Days         *int   `json:"days"`
	}](r)
	if err != nil {
		return err
	}
	if in.Days == nil {
		return problem.Missing("days")
	}
	u, err := a.c.Recordings.AddRule(r.Context(), recordings.Rule{ProjectID: o.ProjectID, Tag: in.Tag,
		SubscriberID: in.SubscriberID, Days: *in.Days})
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusCreated, showRule(u))
}

// removeRule serves DELETE /api/relay/rest/recordings/retention/{rule}.
func (a *API) removeRule(w http.ResponseWriter, r *http.Request, o recordings.Owner) error {
	if err := a.c.Recordings.DeleteRule(r.Context(), o.ProjectID, r.PathValue("rule")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// previewRules serves GET /api/relay/rest/recordings/retention/preview.
func (a *API) previewRules(w http.ResponseWriter, r *http.Request, o recordings.Owner) error {
	q := r.URL.Query()
	var more *recordings.Rule
	if text := q.Get("days"); text != "" {
		days, err := strconv.Atoi(text)
		if err != nil {
			return problem.BadParam("days", "days must be an integer")
		}
		more = &recordings.Rule{ProjectID: o.ProjectID, Tag: q.Get("tag"), SubscriberID: q.Get("subscriber_id"),
			Days: days}
	}
	sum, err := a.c.Recordings.PreviewRetention(r.Context(), o.ProjectID, more)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, map[string]int64{"recordings": sum.Recordings, "bytes": sum.Bytes})
}

// An access describes the requests of one client within an hour.
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
		return access{c.Actor, c.Address, c.Format, c.Requests, c.Bytes, seconds(c.First), seconds(c.Last)}
	})
}

// maxUsageDays is the longest time of a usage report.
const maxUsageDays = 3660

// dayUsage is the usage of a day, or of all days.
type dayUsage struct {
	Day        string  `json:"day,omitempty"`
	Recordings int64   `json:"recordings"`
	Seconds    int64   `json:"seconds"`
	Bytes      int64   `json:"bytes"`
	Stored     int64   `json:"stored_bytes"`
	Price      float64 `json:"price"`
}

func showUsage(u recordings.Usage) dayUsage {
	d := dayUsage{"", u.Recordings, u.Seconds, u.Bytes, u.Stored, float64(u.Price) / 1e6}
	if !u.Day.IsZero() {
		d.Day = u.Day.Format(time.DateOnly)
	}
	return d
}

// usage serves GET /api/relay/rest/recordings/usage, as JSON or CSV.
func (a *API) usage(w http.ResponseWriter, r *http.Request, o recordings.Owner) error {
	q := r.URL.Query()
	from, err := parseTime("from", q.Get("from"))
	before, errBefore := parseTime("before", q.Get("before"))
	if err := errors.Join(err, errBefore); err != nil {
		return err
	}
	if before.IsZero() {
		before = time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 1)
	}
	if from.IsZero() {
		from = before.AddDate(0, 0, -30)
	}
	from, before = from.UTC().Truncate(24*time.Hour), before.UTC().Truncate(24*time.Hour)
	if days := before.Sub(from) / (24 * time.Hour); days < 1 || days > maxUsageDays {
		return problem.BadParam("from", "from must be 1 to %d days before the end", maxUsageDays)
	}

	all, err := a.c.Recordings.Usage(r.Context(), o.ProjectID, from, before)
	if err != nil {
		return err
	}
	switch q.Get("format") {
	case "", "json":
		days := make([]dayUsage, len(all))
		for i, u := range all {
			days[i] = showUsage(u)
		}
		return web.JSON(w, http.StatusOK, map[string]any{"from": from.Format(time.DateOnly),
			"before": before.Format(time.DateOnly), "price_unit": "USD", "total": showUsage(recordings.SumUsage(all)),
			"days": days})
	case "csv":
		return usageCSV(w, all)
	}
	return problem.BadParam("format", "format must be json or csv")
}

func usageCSV(w http.ResponseWriter, all []recordings.Usage) error {
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="usage.csv"`)
	out := csv.NewWriter(w)
	rows := [][]string{{"day", "recordings", "seconds", "bytes", "stored_bytes", "price_usd"}}
	for _, u := range all {
		number := func(n int64) string { return strconv.FormatInt(n, 10) }
		rows = append(rows, []string{u.Day.Format(time.DateOnly), number(u.Recordings), number(u.Seconds),
			number(u.Bytes), number(u.Stored), strconv.FormatFloat(float64(u.Price)/1e6, 'f', 6, 64)})
	}
	return out.WriteAll(rows)
}
