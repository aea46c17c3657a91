package laml

import (
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/recordings"
)

// createRecording serves POST /Recordings. It responds with 201 for a new recording, and with 200
// for a recording that already exists. The body is the file, or a form that contains the file. If
// the query has a Status, the recording is announced instead.
func (a *API) createRecording(w http.ResponseWriter, r *http.Request, o recordings.Owner, urls mediaURLs) error {
	if err := o.MayChange(); err != nil {
		return err
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return problem.New(problem.Malformed, "bad_request", "the query is invalid")
	}
	if query.Has("Status") {
		return a.announceRecording(w, r, o, urls, query)
	}

	upload, err := a.upload(w, r, query)
	if err != nil {
		return err
	}
	upload.ProjectID = o.ProjectID
	rec, added, err := a.recordings.Ingest(r.Context(), upload)
	if err != nil {
		return err
	}

	status := http.StatusOK
	if added {
		status = http.StatusCreated
	}
	return web.JSON(w, status, a.document(rec, urls))
}

// upload finds the file and its description in a request.
func (a *API) upload(w http.ResponseWriter, r *http.Request, query url.Values) (u recordings.Upload, err error) {
	if err := a.checkBody(r); err != nil {
		return u, err
	}

	contentType := r.Header.Get("Content-Type")
	if contentType == "" {
		return a.rawUpload(r, query)
	}
	unsupported := problem.New(problem.Unsupported, "unsupported_media_type",
		"send the file as audio/*, as application/octet-stream, or in a multipart/form-data")
	mediaType, params, err := mime.ParseMediaType(contentType)
	switch {
	case err != nil:
		return u, unsupported
	case strings.HasPrefix(mediaType, "audio/"), mediaType == "application/octet-stream":
		return a.rawUpload(r, query)
	case mediaType == "multipart/form-data" && params["boundary"] != "":
		body := http.MaxBytesReader(w, r.Body, a.recordings.MaxUpload()+maxFields)
		return formUpload(multipart.NewReader(body, params["boundary"]), r.Header, query)
	}
	return u, unsupported
}

// checkBody returns an error if the headers already show that the body cannot be accepted.
func (a *API) checkBody(r *http.Request) error {
	if r.ContentLength > a.recordings.MaxUpload()+maxFields {
		return problem.New(problem.TooLarge, "request_too_large", "the upload is larger than %d bytes",
			a.recordings.MaxUpload())
	}
	if web.Encoded(r) {
		return problem.New(problem.Unsupported, "unsupported_media_type", "compressed uploads are not supported")
	}
	return nil
}

// rawUpload uses the body as the file. The description is in the headers and the query, so its
// errors are found before the file is read.
func (a *API) rawUpload(r *http.Request, query url.Values) (recordings.Upload, error) {
	d, err := readDescription(r.Header, query)
	if err != nil {
		return recordings.Upload{}, err
	}
	if err := a.recordings.Check(d); err != nil {
		return recordings.Upload{}, err
	}
	return recordings.Upload{
		Body:     r.Body,
		Hints:    []string{r.Header.Get("Content-Type"), d.Path},
		Describe: func() (recordings.Description, error) { return d, nil },
	}, nil
}

// formUpload takes the file from a multipart form.
func formUpload(parts *multipart.Reader, headers http.Header, query url.Values) (recordings.Upload, error) {
	f := &form{reader: parts, fields: make(url.Values)}
	if err := f.findFile(); err != nil {
		return recordings.Upload{}, err
	}
	describe := func() (recordings.Description, error) {
		d, err := readDescription(headers, query, f.fields)
		if err != nil {
			return d, err
		}
		d.Name = f.file.FileName()
		return d, nil
	}
	return recordings.Upload{
		Body:     f,
		Hints:    []string{f.file.Header.Get("Content-Type"), f.file.FileName()},
		Describe: describe,
	}, nil
}

// Limits of a form, without its file.
const (
	maxFields = 64 << 10 // bytes of all fields and their names, and of the form's boundaries
	maxParts  = 64
)

// A form reads the file in a multipart form. It collects the fields before the file immediately,
// and the fields after the file when the file has been read.
type form struct {
	reader *multipart.Reader
	file   *multipart.Part
	fields url.Values
	bytes  int
	parts  int
}

// findFile collects the fields before the file.
func (f *form) findFile() error {
	file, err := f.next()
	if err != nil {
		return err
	}
	if file == nil {
		return problem.New(problem.Invalid, "missing_required_parameter", "the form contains no file")
	}
	f.file = file
	return nil
}

// Read reads the file. It returns io.EOF only after the rest of the form has been read.
func (f *form) Read(p []byte) (int, error) {
	n, err := f.file.Read(p)
	if !errors.Is(err, io.EOF) {
		return n, err
	}

	second, err := f.next()
	if err != nil {
		return n, err
	}
	if second != nil {
		return n, problem.New(problem.Invalid, "invalid_parameter", "the form contains more than one file")
	}
	return n, io.EOF
}

// next collects fields up to the next file, and returns this file. At the end of the form, it
// returns nil.
func (f *form) next() (file *multipart.Part, err error) {
	for {
		part, err := f.reader.NextPart()
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, problem.New(problem.Malformed, "bad_request", "the form is incomplete")
		}

		if part.FileName() != "" || strings.HasPrefix(part.Header.Get("Content-Type"), "audio/") {
			return part, nil
		}
		value, err := io.ReadAll(io.LimitReader(part, maxFields))
		if err != nil {
			return nil, problem.New(problem.Malformed, "bad_request", "the form is incomplete")
		}

		f.fields.Add(part.FormName(), string(value))
		f.parts++
		f.bytes += len(part.FormName()) + len(value)
		if f.bytes >= maxFields || f.parts > maxParts {
			return nil, problem.New(problem.TooLarge, "request_too_large",
				"the fields of the form are too many or too large")
		}
	}
}
