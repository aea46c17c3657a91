package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/operator"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/templates"
)

// A callPage shows one call.
type callPage struct {
	Call       callRow
	Base       string
	MayHangUp  bool
	Rooms      []fabric.Address // rooms that the call may be moved to
	MovedIn    bool             // the call is in a room that it may be moved out of
	Live       string           // the URL of its event stream, while the call is running
	Members    []callRow        // the newest calls of the room session that this call joined
	Recordings []recordingRow
	Quality    []fact
	Events     []eventRow
	Snippets   []snippet
}

// showCall serves GET /dashboard/projects/{project}/calls/{id}.
func (a *callPages) showCall(v *visit) error {
	r, err := a.findCall(v)
	if err != nil {
		return err
	}

	p := callPage{
		Call:      v.callRow(r),
		Base:      v.base(),
		MayHangUp: r.State != calls.Completed && !r.Ending && v.mayIn(operator.Write),
		Quality:   qualityFacts(v.words(), r),
		Snippets:  a.callSnippets(r),
	}
	if p.Call.Running {
		p.Live = v.live(callMark(r))
	}
	if p.MayHangUp && a.Move != nil && r.State == calls.InCall {
		p.MovedIn = !r.Joined.IsZero()
		p.Rooms, err = a.roomsFor(v, r)
		if err != nil {
			return err
		}
	}

	p.Members, err = a.membersOf(v, r)
	if err != nil {
		return err
	}
	p.Recordings, err = a.recordingsOf(v, r)
	if err != nil {
		return err
	}
	found, err := a.trail.audit(v, audit.Filter{ProjectID: v.project.ID, Target: r.ID}, page.Query{Size: 20})
	if err != nil {
		return err
	}
	p.Events, err = a.trail.eventRows(v, found.Items)
	if err != nil {
		return err
	}
	options := templates.Options{Status: http.StatusOK, Media: true, Connect: []string{"'self'"}}
	return a.pageWith(v, options, "Call", "call", p)
}

// callMark returns a string that changes when the state of a call changes, its first recording
// starts, or the call moves.
func callMark(r calls.Record) string { return string(r.State) + r.RecordingSid + r.RoomSession }

// followCall serves GET /dashboard/projects/{project}/calls/{id}/live.
func (a *callPages) followCall(v *visit) error {
	if _, err := a.findCall(v); err != nil {
		return err
	}
	return a.follow(v, func(context.Context) (string, error) {
		r, err := a.findCall(v)
		if err != nil {
			return "", err
		}
		return callMark(r), nil
	})
}

// membersOf returns the newest members of the room session that a call has joined.
func (a *callPages) membersOf(v *visit, r calls.Record) (rows []callRow, err error) {
	if r.RoomSession == "" {
		return nil, nil
	}
	found, err := a.Calls.List(v.r.Context(), v.project.ID, calls.Filter{RoomSession: r.RoomSession},
		page.Query{Size: maxMembersOfCall})
	if err != nil {
		return nil, err
	}
	for _, member := range found.Items {
		rows = append(rows, v.callRow(member))
	}
	return rows, nil
}

// maxMembersOfCall is the maximum number of members of a room session that the page of a call
// shows.
const maxMembersOfCall = 100

// recordingsOf returns the latest recordings of a call.
func (a *callPages) recordingsOf(v *visit, r calls.Record) ([]recordingRow, error) {
	owner := recordings.Owner{ProjectID: v.project.ID}
	return a.latestRecordings(v, recordings.Filter{Owner: owner, CallSid: r.ID})
}

// latestRecordings returns the latest recordings that match a filter.
func (a *callPages) latestRecordings(v *visit, filter recordings.Filter) (rows []recordingRow, err error) {
	if a.Recordings == nil {
		return nil, nil
	}
	found, err := a.Recordings.List(v.r.Context(), filter, page.Query{Size: maxRecordingsOfCall})
	if err != nil {
		return nil, err
	}
	for _, r := range found.Items {
		rows = append(rows, v.recordingRow(r))
	}
	return rows, nil
}

// maxRecordingsOfCall is the maximum number of recordings that the page of a call or a room shows.
const maxRecordingsOfCall = 20

// findCall returns the call whose id is in the path.
func (a *callPages) findCall(v *visit) (calls.Record, error) {
	if a.Calls == nil {
		return calls.Record{}, problem.NoSuch("call")
	}
	return a.Calls.Find(v.r.Context(), v.project.ID, "", v.r.PathValue("id"))
}

// hangUp serves POST /dashboard/projects/{project}/calls/{id}/hangup. The form is in the list of calls
// and on the page of a call.
func (a *callPages) hangUp(v *visit) error {
	r, err := a.findCall(v)
	if err != nil {
		return err
	}
	one := v.base() + "/calls/" + r.ID
	err = a.Calls.HangUp(v.r.Context(), v.project.ID, r.ID)
	if errors.Is(err, problem.NotFound) {
		return v.redirect(one + "?done=callover")
	}
	if err != nil {
		return err
	}
	return v.redirect(one + "?done=hungup")
}

// qualityFacts describes the media quality of an ended call.
func qualityFacts(w *words.Words, r calls.Record) []fact {
	q := r.Document().Quality
	if q == nil {
		return nil
	}
	decimal := func(format string, n float64) string { return w.Number(fmt.Sprintf(format, n)) }
	score := words.Textf("(MOS %s of 4.5)", decimal("%.2f", q.MOS))
	packets := q.Packets + q.Lost
	percent := decimal("%.1f %%", 100*float64(q.Lost)/float64(packets))
	return []fact{
		{Name: "Estimate", Text: words.Sentences(qualityOf(q.MOS), score)},
		{Name: "Packets lost", Text: words.Textf("%s of %s (%s)", q.Lost, packets, percent)},
		{Name: "Jitter", Text: decimal("%.1f ms", q.JitterMs)},
		{Name: "Round trip", Text: decimal("%.1f ms", q.RoundTripMs)},
		{Name: "Transport", Text: strings.ToUpper(q.Transport)},
	}
}

// callSnippets returns code that reads a call and ends it.
func (a *callPages) callSnippets(r calls.Record) []snippet {
	at := fmt.Sprintf("%s/api/laml/2010-04-01/Accounts/%s/Calls/%s.json", a.PublicURL, r.ProjectID, r.ID)
	api := "# KEY is an API key with the scope Voice\ncurl -u " + r.ProjectID + ":KEY " + at
	cli := "selvage call show " + r.ID
	if r.State != calls.Completed {
		api += "\ncurl -u " + r.ProjectID + ":KEY -d Status=completed " + at
		cli += "\nselvage call hangup " + r.ID
	}
	return []snippet{{Title: "curl", Text: api}, {Title: "Command line", Text: cli}}
}
