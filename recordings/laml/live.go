package laml

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/recordings"
)

// announceRecording serves POST /Recordings?Status=in-progress without a body. It responds with 201
// for a recording that has just begun, and with 200 for a recording that was already announced.
func (a *API) announceRecording(
	w http.ResponseWriter, r *http.Request, o recordings.Owner, urls mediaURLs, query url.Values,
) error {
	if status := query["Status"]; len(status) != 1 || recordings.Status(status[0]) != recordings.InProgress {
		return problem.BadParam("Status", "Status must be in-progress, for a recording that has started, or be omitted")
	}
	if r.ContentLength != 0 {
		return problem.BadParam("Status",
			"a recording in progress has no file yet: send no body, or no Status")
	}

	d, err := readDescription(r.Header, query)
	if err != nil {
		return err
	}
	rec, added, err := a.recordings.Announce(r.Context(), o.ProjectID, d)
	if err != nil {
		return err
	}

	status := http.StatusOK
	if added {
		status = http.StatusCreated
	}
	return web.JSON(w, status, a.document(rec, urls))
}

// startRecording serves POST /Calls/{CallSid}/Recordings and
// /Conferences/{ConferenceSid}/Recordings.
func (a *API) startRecording(w http.ResponseWriter, r *http.Request, o recordings.Owner, urls mediaURLs) error {
	if err := o.MayChange(); err != nil {
		return err
	}
	fields, err := web.Fields(r)
	if err != nil {
		return err
	}

	var start recordings.Start
	start.Callback.Events = events(fields["RecordingStatusCallbackEvent"])
	err = single(fields, map[string]*string{
		"RecordingChannels":             &start.Channels,
		"RecordingTrack":                &start.Track,
		"Trim":                          &start.Trim,
		"RecordingStatusCallback":       &start.Callback.URL,
		"RecordingStatusCallbackMethod": &start.Callback.Method,
	})
	if err != nil {
		return err
	}

	start.Callback.Method = strings.ToUpper(start.Callback.Method)
	begin, sid := a.recordings.Start, r.PathValue("CallSid")
	if conference := r.PathValue("ConferenceSid"); conference != "" {
		begin, sid = a.recordings.StartConference, conference
	}
	rec, err := begin(r.Context(), o.ProjectID, sid, start)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusCreated, a.document(rec, urls))
}

// events splits the events of a callback. Clients repeat the field, whereas the vendor's
// documentation separates events with spaces.
func events(fields []string) (names []string) {
	for _, text := range fields {
		names = append(names, strings.Fields(text)...)
	}
	return names
}

// moveRecording serves POST /Calls/{CallSid}/Recordings/{file}, and the same path below
// /Conferences/{ConferenceSid}.
func (a *API) moveRecording(w http.ResponseWriter, r *http.Request, o recordings.Owner, urls mediaURLs) error {
	if err := o.MayChange(); err != nil {
		return err
	}
	fields, err := web.Fields(r)
	if err != nil {
		return err
	}

	var status, pause string
	if err := single(fields, map[string]*string{"Status": &status, "PauseBehavior": &pause}); err != nil {
		return err
	}
	if status == "" {
		return problem.Missing("Status")
	}

	rec, err := a.findRecording(r, o)
	if err != nil {
		return err
	}
	rec, err = a.recordings.Move(r.Context(), rec, recordings.Status(status), pause)
	if err != nil {
		return err
	}
	return web.JSON(w, http.StatusOK, a.document(rec, urls))
}
