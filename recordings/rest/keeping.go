package rest

import (
	"errors"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/recordings/levels"
)

// mark serves PATCH /api/relay/rest/recordings/{id}. It changes the hold and the tags of a recording.
func (a *API) mark(w http.ResponseWriter, r *http.Request, o recordings.Owner) error {
	in, err := web.Decode[struct {
		Hold  *string   `json:"hold"`
		Tags  *[]string `json:"tags"`
		Tag   []string  `json:"tag"`
		Untag []string  `json:"untag"`
	}](r)
	if err != nil {
		return err
	}

	url, err := a.c.MediaURLs(r, o) // before anything is stored, because the query may be wrong
	if err != nil {
		return err
	}
	rec, err := a.c.Recordings.Mark(r.Context(), o.ProjectID, r.PathValue("id"), recordings.MarkInput(in))
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, describe(rec, url(rec)))
}

// A selection is the filter of a bulk request.
type selection struct {
	Tag           string   `json:"tag"`
	Held          bool     `json:"held"`
	CallID        string   `json:"call_id"`
	ConferenceID  string   `json:"conference_id"`
	Party         string   `json:"party"`
	Name          string   `json:"name"`
	Direction     string   `json:"direction"`
	Flag          string   `json:"flag"`
	CreatedFrom   string   `json:"created_from"`
	CreatedBefore string   `json:"created_before"`
	Longer        *float64 `json:"longer"`
	Shorter       *float64 `json:"shorter"`
	SubscriberID  string   `json:"subscriber_id"`
}

// filter returns the filter for the selected recordings of a project.
func (s selection) filter(projectID string) (recordings.Filter, error) {
	f := recordings.Filter{
		Owner:         recordings.Owner{ProjectID: projectID, SubscriberID: s.SubscriberID},
		Tag:           s.Tag,
		Held:          s.Held,
		CallSid:       s.CallID,
		ConferenceSid: s.ConferenceID,
		Party:         s.Party,
		Name:          s.Name,
		Direction:     s.Direction,
	}

	var errs []error
	if s.Tag != "" {
		errs = append(errs, recordings.CheckTag("filter", s.Tag))
	}
	if s.Flag != "" {
		flag, ok := levels.FlagOf(s.Flag)
		if !ok {
			names := strings.Join(levels.FlagNames(), ", ")
			errs = append(errs, problem.BadParam("filter", "flag must be one of %s", names))
		}
		f.Flag = flag
	}

	var err error
	f.CreatedFrom, err = parseTime("created_from", s.CreatedFrom)
	errs = append(errs, err)
	f.CreatedBefore, err = parseTime("created_before", s.CreatedBefore)
	errs = append(errs, err)
	f.DurationFrom, err = parseSeconds("longer", s.Longer, 0)
	errs = append(errs, err)
	f.DurationBefore, err = parseSeconds("shorter", s.Shorter, time.Millisecond)
	errs = append(errs, err)
	return f, errors.Join(errs...)
}

// Durations in a selection must be less than maxSeconds.
const maxSeconds = 1e9

// parseSeconds converts a number of seconds to a duration. It converts nil to 0, which does not
// restrict a selection. A number that is out of range, or less than the minimum, is an error:
// without it, the selection would contain more recordings.
func parseSeconds(name string, seconds *float64, minimum time.Duration) (time.Duration, error) {
	if seconds == nil {
		return 0, nil
	}

	inRange := *seconds >= 0 && *seconds < maxSeconds
	d := time.Duration(math.Round(*seconds*1000)) * time.Millisecond
	if !inRange || d < minimum {
		return 0, problem.BadParam("filter", "%s must be at least %v and less than %d seconds",
			name, minimum, int(maxSeconds))
	}
	return d, nil
}

// parseTime parses a date, or a time in RFC 3339. It returns the zero time for "".
func parseTime(param, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		parsed, err := time.Parse(layout, text)
		if err == nil && parsed.Year() >= 1970 && parsed.Year() < 10_000 {
			return parsed, nil
		}
	}
	return time.Time{}, problem.BadParam(param, "%s must be a date like 2026-11-20 or 2026-11-20T10:11:12Z", param)
}

// bulk serves POST /api/relay/rest/recordings/bulk. It deletes or marks all recordings that a filter
// selects. A request with dry_run only counts them.
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

	filter, err := in.Filter.filter(o.ProjectID)
	if err != nil {
		return err
	}
	if in.Action != "delete" && in.Action != "mark" {
		return problem.BadParam("action", "action must be delete or mark")
	}

	expect := int64(-1) // any number
	if in.Expect != nil {
		expect = *in.Expect
	} else if !in.DryRun {
		return problem.BadParam("expect", "expect must be the number that a request with dry_run returned as matched")
	}

	sum, err := a.c.Recordings.Change(r.Context(), recordings.Bulk{
		Filter: filter,
		Delete: in.Action == "delete",
		Mark:   recordings.MarkInput{Hold: in.Hold, Tag: in.Tag, Untag: in.Untag},
		DryRun: in.DryRun,
		Expect: expect,
	})
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, map[string]int64{
		"matched": sum.Matched,
		"bytes":   sum.Bytes,
		"changed": sum.Changed,
		"refused": sum.Refused,
	})
}
