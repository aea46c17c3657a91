package dashboard

import (
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"time"

	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/web"
	"github.com/selvage/selvage/internal/words"
	"github.com/selvage/selvage/recordings"
	"github.com/selvage/selvage/templates"
)

// A submission holds the fields and files that a POST sent.
type submission struct {
	form  url.Values
	file  *multipart.Part   // the file of an upload, which has not been read yet; nil if there is no file
	files *multipart.Reader // reads the parts of the form after file; nil if there is no file
}

// openUpload reads the fields of a form up to its first file. The form token comes before the files,
// so that it is verified before any part of a file is read.
func (a *site) openUpload(v *visit) error {
	mediaType, params, err := mime.ParseMediaType(v.r.Header.Get("Content-Type"))
	if err != nil || mediaType != "multipart/form-data" || params["boundary"] == "" {
		return v.r.ParseForm() // the form has no file
	}
	limit := maxForm
	if v.route.large {
		limit = maxLargeForm
	}
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, v.route.upload+int64(limit))

	parts := multipart.NewReader(v.r.Body, params["boundary"])
	v.r.PostForm = make(url.Values)
	v.file, err = readFields(parts, v.r.PostForm, limit)
	if err != nil {
		return err
	}
	if v.file != nil {
		v.files = parts
	}
	return nil
}

// readFields reads the fields of a form into posted, up to the next file. It returns that file, or nil
// after the last field. limit is the maximum size of the fields.
func readFields(parts *multipart.Reader, posted url.Values, limit int) (*multipart.Part, error) {
	left := limit
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if isFile(part) {
			return part, nil
		}

		name := part.FormName()
		value, err := io.ReadAll(io.LimitReader(part, int64(left)))
		left -= len(name) + len(value) + fieldOverhead
		if err != nil || left <= 0 || name == "" {
			return nil, errors.New("too many fields")
		}
		posted.Add(name, string(value))
	}
}

// readRest reads the fields after the only file of a form. It skips the unread part of the file, because
// browsers show no response until they have sent the whole form.
func (s *submission) readRest() error {
	if s.files == nil {
		return nil
	}
	next, err := readFields(s.files, s.form, maxForm)
	s.files = nil
	if err != nil || next != nil {
		return problem.New(problem.Malformed, "bad_request", "the form is invalid")
	}
	return checkText(s.form)
}

// isFile reports whether part belongs to an input for a file.
func isFile(part *multipart.Part) bool {
	return part.FormName() == "file" || part.FormName() == "dark_file"
}

// fieldOverhead is approximately the memory in bytes that a field needs in addition to its name and
// value.
const fieldOverhead = 256

// An uploadPage is the form that uploads a recording.
type uploadPage struct {
	Base   string
	Action string
	Most   string // the maximum size of a recording
	API    string // URL of the API
	ID     string // id of the project
	Form   form
}

// maxUpload returns the maximum size of a recording, in bytes.
func (a *recordingPages) maxUpload() int64 {
	if a.Recordings == nil {
		return maxLogoForm
	}
	return a.Recordings.MaxUpload()
}

// newRecording serves GET /dashboard/projects/{project}/recordings/upload.
func (a *recordingPages) newRecording(v *visit) error {
	return a.showUpload(v, http.StatusOK, nil)
}

// showUpload shows the form with the submitted values. If err is not nil, the form also shows the
// errors in these values.
func (a *recordingPages) showUpload(v *visit, code int, err error) error {
	if a.Recordings == nil {
		return problem.NoSuch("page")
	}
	p := uploadPage{
		Base:   v.base(),
		Action: v.base() + "/recordings",
		Most:   v.size(a.Recordings.MaxUpload()),
		API:    a.PublicURL,
		ID:     v.project.ID,
		Form:   uploadForm(v.form),
	}
	if err != nil && !p.Form.blame(err) {
		text := v.aboutFile(err)
		if text == "" {
			return err
		}
		p.Form.Faults = faultAt("f-file", text)
	}
	p.Form.Faults = p.Form.Faults.moved("", "f-file") // an error without a field is about a missing file
	options := templates.Options{Status: code, Connect: []string{"'self'"}}
	return a.pageWith(v, options, "Upload a recording", "recording_upload", p)
}

// aboutFile returns the text of an error about the uploaded file, or "" for other errors.
func (v *visit) aboutFile(err error) string {
	first := problem.First(err)
	if first == nil {
		return ""
	}
	switch first.Kind {
	case problem.Unsupported:
		return words.Textf("%s is not a WAV, MP3 or Ogg file that can be played.", v.quote(v.file.FileName()))
	case problem.TooLarge, problem.Malformed:
		return sentence(first.Message)
	}
	return ""
}

// uploadForm returns the form that describes a recording, with the submitted values.
func uploadForm(posted url.Values) form {
	text := func(name, label, hint string) input {
		return input{
			Kind:   kindText,
			Type:   "text",
			Name:   name,
			Label:  label,
			Hint:   hint,
			Length: 255,
			Value:  posted.Get(name),
		}
	}

	start := input{
		Kind:  kindText,
		Type:  "datetime-local",
		Name:  "StartTime",
		Label: "Start of the call",
		Hint:  "In UTC. Leave empty if unknown.",
		Value: posted.Get("StartTime"),
	}
	direction := input{
		Kind:    kindSelect,
		Name:    "Direction",
		Label:   "Direction",
		Options: toChoices(recordings.Directions, posted.Get("Direction"), true),
	}

	return form{
		Inputs: []input{
			text("From", "From", "The caller: a number, or an address such as /private/ada."),
			text("To", "To", "The callee."),
			start,
			direction,
			text("tags", "Tags", "Words separated by commas or spaces, such as: complaint, vip."),
		},
		More: []input{text("CallSid", "Call", "The id of the recorded call.")},
	}
}

// dateTime parses the value of a datetime-local input. Browsers omit seconds that are zero.
func dateTime(text string) (time.Time, error) {
	t, err := time.Parse("2006-01-02T15:04", text)
	if err == nil {
		return t, nil
	}
	return time.Parse("2006-01-02T15:04:05", text)
}

// uploadRecording serves POST /dashboard/projects/{project}/recordings.
func (a *recordingPages) uploadRecording(v *visit) error {
	if a.Recordings == nil {
		return problem.NoSuch("page")
	}
	r, err := a.storeUpload(v)
	if err != nil {
		// The rest of a file that is too large may be too large to read.
		if wrong := v.readRest(); wrong != nil && !errors.Is(err, problem.TooLarge) {
			return wrong
		}
		return a.showUpload(v, http.StatusUnprocessableEntity, err)
	}
	done := "stored"
	if err := a.tagUpload(v, r.Sid); err != nil {
		web.LogInternal(v.r, a.Log, err)
		done = "storeduntagged"
	}
	return v.redirect(v.base() + "/recordings/" + r.Sid + "?done=" + done)
}

// storeUpload stores the file of the form.
func (a *recordingPages) storeUpload(v *visit) (recordings.Recording, error) {
	if v.file == nil || v.file.FileName() == "" {
		return recordings.Recording{}, problem.New(problem.Invalid, "missing_required_parameter", "choose a file")
	}
	hints := []string{v.file.FileName()}
	if contentType := v.file.Header.Get("Content-Type"); contentType != "" {
		hints = []string{contentType, v.file.FileName()}
	}
	r, _, err := a.Recordings.Ingest(v.r.Context(), recordings.Upload{
		ProjectID: v.project.ID,
		Body:      v.file,
		Hints:     hints,
		Describe:  v.describeUpload,
	})
	return r, err
}

// tagUpload adds the tags in the form to the stored recording.
func (a *recordingPages) tagUpload(v *visit, sid string) error {
	tags := tagsIn(v.form.Get("tags"))
	if len(tags) == 0 {
		return nil
	}
	_, err := a.Recordings.Mark(v.r.Context(), v.project.ID, sid, recordings.MarkInput{Tag: tags})
	return err
}

// describeUpload returns the description of a recording from the fields of the form.
func (s *submission) describeUpload() (recordings.Description, error) {
	if err := s.readRest(); err != nil {
		return recordings.Description{}, err
	}
	if err := recordings.CheckTags(tagsIn(s.form.Get("tags"))); err != nil {
		return recordings.Description{}, err
	}
	metadata := recordings.Metadata{
		CallSid:   s.form.Get("CallSid"),
		From:      s.form.Get("From"),
		To:        s.form.Get("To"),
		Direction: s.form.Get("Direction"),
		Name:      s.file.FileName(),
	}
	if text := s.form.Get("StartTime"); text != "" {
		start, err := dateTime(text)
		if err != nil {
			return recordings.Description{}, problem.BadParam("StartTime",
				"the start of the call must be a day and a time, such as 2030-01-31T15:04")
		}
		metadata.StartTime = start
	}
	return recordings.Description{Metadata: metadata}, nil
}
