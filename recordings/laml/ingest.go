package laml

import (
	"errors"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/recordings"
)

// An ingested is the response to a switch. Switches compare it with their file before they delete
// the file.
type ingested struct {
	Sid      string            `json:"sid"`
	Status   recordings.Status `json:"status"`
	Duration float64           `json:"duration"`
	Bytes    int64             `json:"bytes"`
	SHA256   string            `json:"sha256"`
}

// ingest serves PUT and POST /ingest/{key}/{path...} to switches, which authenticate only with the
// key in the URL. It responds with 201 for a new recording, and with 200 for a recording that
// already exists. The body is the file with any Content-Type, or a form that contains the file.
func (a *API) ingest(w http.ResponseWriter, r *http.Request) error {
	web.NoStore(w)
	projectID, recheck, err := a.ingestKey(r, r.PathValue("key"))
	if err != nil {
		return err
	}

	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return problem.New(problem.Malformed, "bad_request", "the query is invalid")
	}

	about, err := readDescription(r.Header, query)
	if err != nil {
		return err
	}
	if err := checkIngested(about); err != nil { // before the file is read
		return err
	}
	upload, err := a.ingestUpload(w, r, query)
	if err != nil {
		return err
	}

	describe := upload.Describe
	upload.ProjectID = projectID
	upload.Describe = func() (recordings.Description, error) {
		d, err := describe()
		if err != nil {
			return d, err
		}
		if err := checkIngested(d); err != nil { // a form may have added fields
			return d, err
		}
		return named(d, r), recheck()
	}

	rec, added, err := a.recordings.Ingest(r.Context(), upload)
	// The error's message contains the digest of the earlier file, which holders of an ingest key
	// may not learn.
	if errors.Is(err, problem.Conflict) {
		return problem.New(problem.Conflict, "conflict", "Idempotency-Key was used before for a different file")
	}
	if err != nil {
		return err
	}

	status := http.StatusOK
	if added {
		status = http.StatusCreated
	}
	return web.JSON(w, status, ingested{
		Sid:      rec.Sid,
		Status:   rec.Status,
		Duration: rec.Duration().Seconds(),
		Bytes:    rec.Bytes,
		SHA256:   rec.SHA256,
	})
}

// checkIngested returns an error if a description has a property that only an API key may set. An
// ingest key is in the configuration of a switch, and may only add recordings.
func checkIngested(d recordings.Description) error {
	for _, field := range []struct{ name, value string }{
		{"RecordingStatusCallback", d.Callback.URL},
		{"RecordingSid", d.Sid},
		{"SubscriberId", d.SubscriberID},
	} {
		if field.value != "" {
			return problem.BadParam(field.name, "%s needs an API key: see POST /Recordings", field.name)
		}
	}
	return nil
}

// ingestUpload finds the file in a request. Switches guess the Content-Type from the file name, so
// the type only matters if it is the type of a form.
func (a *API) ingestUpload(w http.ResponseWriter, r *http.Request, query url.Values) (recordings.Upload, error) {
	if err := a.checkBody(r); err != nil {
		return recordings.Upload{}, err
	}
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err == nil && kind == "multipart/form-data" && params["boundary"] != "" {
		body := http.MaxBytesReader(w, r.Body, a.recordings.MaxUpload()+maxFields)
		return formUpload(multipart.NewReader(body, params["boundary"]), r.Header, query)
	}
	u, err := a.rawUpload(r, query)
	if err != nil {
		return recordings.Upload{}, err
	}
	u.Hints = append(u.Hints, r.PathValue("path"))
	return u, nil
}

// named returns a description with the path of the URL, unless the sender gave another path. Some
// senders use the same name for all files, so the call or conference in the query becomes part of the
// path.
func named(d recordings.Description, r *http.Request) recordings.Description {
	if d.Path != "" || r.PathValue("path") == "" {
		return d
	}
	d.Path = r.PathValue("path")
	d.Name = d.Path
	switch {
	case d.CallSid != "":
		d.Path += "?" + url.Values{"CallSid": {d.CallSid}, "Track": {d.Track}}.Encode()
	case d.ConferenceSid != "":
		d.Path += "?" + url.Values{"ConferenceSid": {d.ConferenceSid}, "Track": {d.Track}}.Encode()
	}
	return d
}
