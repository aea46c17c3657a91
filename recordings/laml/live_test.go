package laml_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/selvage/selvage/recordings"
)

// A live holds the members of a document that describe a recording in progress.
type live struct {
	Sid      string
	Status   string
	Channels string
	Source   string
	Trim     string
	Price    *string
	Duration int
	CallSid  *string `json:"call_sid"`
	Start    *string `json:"start_time"`
	End      *string `json:"end_time"`
	Error    *string `json:"error_code"`
	Media    struct {
		MediaURL *string `json:"media_url"`
		From     *string
	}
}

const formType = "application/x-www-form-urlencoded"

func (s *server) post(t *testing.T, path, fields string) answer {
	t.Helper()
	return s.do(t, "POST", s.path(path), s.basic, body(formType, []byte(fields)))
}

// announce announces a recording, so that the server knows its call.
func (s *server) announce(t *testing.T, query string) live {
	t.Helper()
	a := s.do(t, "POST", s.path("/Recordings?Status=in-progress&"+query), s.basic)
	if a.StatusCode != http.StatusCreated {
		t.Fatalf("announcing %s = %d %s, want 201", query, a.StatusCode, a.body)
	}
	return read[live](t, a)
}

func (s *server) show(t *testing.T, sid string) live {
	t.Helper()
	return read[live](t, s.do(t, "GET", s.path("/Recordings/"+sid+".json"), s.basic))
}

// TestAnnouncedRecording checks the document of an announced recording, which has no media yet.
func TestAnnouncedRecording(t *testing.T) {
	s := newServer(t)
	begun := s.announce(t, "CallSid=c&From=/private/alice")
	if begun.Status != "in-progress" {
		t.Errorf("the status is %s, want in-progress", begun.Status)
	}
	wantText(t, "call_sid", begun.CallSid, "c")
	wantText(t, "start_time", begun.Start, s.clock.now().Format(time.RFC1123Z))
	if begun.Duration != 0 {
		t.Errorf("the duration is %d s, want 0", begun.Duration)
	}
	for name, got := range map[string]*string{
		"end_time":  begun.End,
		"price":     begun.Price,
		"media_url": begun.Media.MediaURL,
	} {
		if got != nil {
			t.Errorf("%s is %q, want null", name, *got)
		}
	}

	for _, ext := range []string{"", ".wav", ".mp3"} {
		a := s.do(t, "GET", s.path("/Recordings/"+begun.Sid+ext))
		wantError(t, "the media of a live recording", a, 404, 20404)
		wantHeader(t, "the media of a live recording", a.Header, "Retry-After", "5")
	}
}

// wantText checks a member of a document that may be null.
func wantText(t *testing.T, name string, got *string, want string) {
	t.Helper()
	if got == nil {
		t.Errorf("%s is null, want %q", name, want)
	} else if *got != want {
		t.Errorf("%s is %q, want %q", name, *got, want)
	}
}

// TestStartedRecording shows that a start changes the settings of an announced recording.
func TestStartedRecording(t *testing.T) {
	s := newServer(t)
	begun := s.announce(t, "CallSid=c&From=/private/alice")
	started := s.post(t, "/Calls/c/Recordings.json",
		"RecordingChannels=dual&Trim=trim-silence&RecordingStatusCallback=https://example.com/cb"+
			"&RecordingStatusCallbackEvent=completed&RecordingStatusCallbackEvent=absent"+
			"&RecordingStatusCallbackMethod=get")
	wantLive(t, "start", started, 201, begun.Sid)
	got := read[live](t, started)
	if got.Channels != "2" {
		t.Errorf("the recording has %s channels, want 2", got.Channels)
	}
	if got.Trim != "trim-silence" {
		t.Errorf("the recording has the trim %q, want trim-silence", got.Trim)
	}

	want := recordings.Callback{
		URL:    "https://example.com/cb",
		Events: []string{"completed", "absent"},
		Method: "GET",
	}
	if diff := cmp.Diff(want, s.find(t, begun.Sid).Callback); diff != "" {
		t.Errorf("the stored callback differs (-want +got):\n%s", diff)
	}
}

// wantLive checks the status of a response, and the Sid of the recording in it.
func wantLive(t *testing.T, name string, a answer, status int, sid string) {
	t.Helper()
	wantStatus(t, name, a, status)
	if got := read[live](t, a).Sid; got != sid {
		t.Errorf("%s returns the recording %s, want %s", name, got, sid)
	}
}

// find returns a recording of the project from the store.
func (s *server) find(t *testing.T, sid string) recordings.Recording {
	t.Helper()
	rec, err := s.rules.Find(t.Context(), recordings.Owner{ProjectID: s.project}, sid)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// TestMovedRecording shows that a recording can be paused, resumed and stopped. A stopped recording
// cannot be resumed.
func TestMovedRecording(t *testing.T) {
	s := newServer(t)
	begun := s.announce(t, "CallSid=c&From=/private/alice")
	for _, move := range []struct{ fields, status, pause string }{
		{"Status=paused", "paused", "silence"},
		{"Status=paused&PauseBehavior=skip", "paused", "skip"},
		{"Status=in-progress", "in-progress", "skip"},
		{"Status=stopped", "stopped", "skip"},
		{"Status=stopped", "stopped", "skip"}, // stopped a second time
	} {
		a := s.post(t, "/Calls/c/Recordings/"+begun.Sid+".json", move.fields)
		wantLive(t, move.fields, a, 200, begun.Sid)
		if got := read[live](t, a).Status; got != move.status {
			t.Errorf("after %s, the status is %s, want %s", move.fields, got, move.status)
		}
		if got := s.find(t, begun.Sid).PauseBehavior; got != move.pause {
			t.Errorf("after %s, PauseBehavior is %q, want %q", move.fields, got, move.pause)
		}
	}
	resumed := s.post(t, "/Calls/c/Recordings/"+begun.Sid, "Status=in-progress")
	wantError(t, "resuming after the stop", resumed, 400, 21220)
}

func TestConferenceRecording(t *testing.T) {
	s := newServer(t)
	begun := s.announce(t, "ConferenceSid=room")
	path := "/Conferences/room/Recordings/" + begun.Sid
	if got := read[live](t, s.post(t, path, "Status=paused")).Status; got != "paused" {
		t.Errorf("after Status=paused, the recording is %s, want paused", got)
	}
	hall := s.post(t, "/Conferences/hall/Recordings/"+begun.Sid, "Status=paused")
	wantError(t, "pausing a recording of another conference", hall, 404, 20404)
	call := s.post(t, "/Calls/room/Recordings/"+begun.Sid, "Status=paused")
	wantError(t, "pausing it as the recording of a call", call, 404, 20404)
	wantError(t, "an invalid status", s.post(t, path, "Status=completed"), 400, 10000)
	s.upload(t, speech, "ConferenceSid=room")
	if got := s.show(t, begun.Sid).Status; got != "completed" {
		t.Errorf("after the upload, the recording is %s, want completed", got)
	}
}

// TestConferenceUploadRepeated shows that a repeated upload of a conference's recording does not
// complete the conference's next recording, which is in progress.
func TestConferenceUploadRepeated(t *testing.T) {
	s := newServer(t)
	first := s.announce(t, "ConferenceSid=room")
	path, file := s.path("/Recordings?ConferenceSid=room"), body("audio/wav", corpusFile(t, speech))
	if a := s.do(t, "POST", path, s.basic, file); a.StatusCode != http.StatusCreated {
		t.Fatalf("the upload = %d %s, want 201", a.StatusCode, a.body)
	}

	next := s.announce(t, "ConferenceSid=room")
	again := s.do(t, "POST", path, s.basic, file)
	if again.StatusCode != http.StatusOK {
		t.Errorf("the repeated upload = %d %s, want 200", again.StatusCode, again.body)
	}
	if got := read[live](t, again).Sid; got != first.Sid {
		t.Errorf("the repeated upload has the Sid %s, want %s", got, first.Sid)
	}
	if got := s.show(t, next.Sid).Status; got != "in-progress" {
		t.Errorf("the next recording is %s, want in-progress", got)
	}
}

func TestStartForms(t *testing.T) {
	s := newServer(t)
	begun := s.announce(t, "CallSid=c")
	path := s.path("/Calls/c/Recordings")
	oneField := "RecordingStatusCallbackEvent=completed+absent&RecordingStatusCallback=http://x.example/"
	json := `{
		"RecordingStatusCallbackEvent": ["in-progress", "absent"],
		"RecordingStatusCallback": "http://x.example/",
		"RecordingChannels": "mono",
		"TrackX": 1
	}`
	for name, content := range map[string]option{
		"nothing":   func(*http.Request) {},
		"JSON":      body("application/json", []byte(json)),
		"one field": body(formType, []byte(oneField)),
	} {
		wantLive(t, "start with "+name, s.do(t, "POST", path, s.basic, content), 201, begun.Sid)
	}
}

func TestLiveIsRefused(t *testing.T) {
	s := newServer(t)
	begun := s.announce(t, "CallSid=c")
	const start = "/Calls/c/Recordings"
	move := start + "/" + begun.Sid
	tests := []struct {
		name, path, fields string
		status, code       int
	}{
		{"an unknown call", "/Calls/nobody/Recordings", "", 400, 21220},
		{"an unknown call and event", "/Calls/nobody/Recordings", "RecordingStatusCallbackEvent=x", 400, 13621},
		{"an invalid event", start, "RecordingStatusCallbackEvent=completed+ended", 400, 13621},
		{"an invalid trim", start, "Trim=yes", 400, 13699},
		{"invalid channels", start, "RecordingChannels=3", 400, 10000},
		{"an invalid track", start, "RecordingTrack=left", 400, 10000},
		{"an invalid method", start, "RecordingStatusCallback=http://x.example/&RecordingStatusCallbackMethod=PUT",
			400, 10000},
		{"no URL", start, "RecordingStatusCallback=x", 400, 10000},
		{"a different scheme", start, "RecordingStatusCallback=file:///etc/passwd", 400, 10000},
		{"a URL without a host", start, "RecordingStatusCallback=http:///x", 400, 10000},
		{"a URL with a control character", start, "RecordingStatusCallback=http://x.example/%0d%0a", 400, 10000},
		{"a repeated field", start, "Trim=trim-silence&Trim=do-not-trim", 400, 10000},
		{"no status", move, "", 400, 10000},
		{"an invalid status", move, "Status=completed", 400, 10000},
		{"an invalid pause", move, "Status=paused&PauseBehavior=x", 400, 10000},
		{"a stop, with an invalid lifetime of links", move + "?MediaUrlTtl=0", "Status=stopped", 400, 10000},
		{"another track, an invalid link lifetime", start + "?MediaUrlTtl=0", "RecordingTrack=inbound", 400, 10000},
		{"an unknown recording", "/Calls/c/Recordings/" + s.project, "Status=paused", 404, 20404},
		{"another call", "/Calls/d/Recordings/" + begun.Sid, "Status=paused", 404, 20404},
	}

	for _, tt := range tests {
		wantError(t, tt.name, s.post(t, tt.path, tt.fields), tt.status, tt.code)
	}

	bad := []string{
		"Status=completed&CallSid=x",
		"Status=&CallSid=x",
		"Status=in-progress",
		"Status=in-progress&Status=in-progress&CallSid=x",
		"Status=in-progress&CallSid=x&Track=left",
	}
	for _, query := range bad {
		wantError(t, query, s.do(t, "POST", s.path("/Recordings?"+query), s.basic), 400, 10000)
	}

	withBody := s.sendWAV(t, "Status=in-progress&CallSid=x", corpusFile(t, speech))
	wantError(t, "an announcement with a body", withBody, 400, 10000)
	text := s.do(t, "POST", s.path(start), s.basic, body("text/plain", []byte("x")))
	wantStatus(t, "starting with a text body", text, 415)
	if got := s.show(t, begun.Sid); got.Status != "in-progress" || got.Trim != "do-not-trim" {
		t.Errorf("after all requests, the recording is %s with the trim %q, want in-progress with do-not-trim",
			got.Status, got.Trim)
	}

	home := s.project
	s.project = s.addProject(t)
	wantError(t, "another project's call", s.post(t, start, ""), 400, 21220)
	s.project = home
}

// TestWaitingEnds shows that a recording becomes absent if it has had no media and no changes for a
// day.
func TestWaitingEnds(t *testing.T) {
	s := newServer(t)
	begun := s.announce(t, "CallSid=c")
	other := s.announce(t, "CallSid=d")
	s.clock.set(s.clock.now().Add(23 * time.Hour))
	s.post(t, "/Calls/d/Recordings/"+other.Sid, "Status=paused")
	s.clock.set(s.clock.now().Add(2 * time.Hour))
	if err := s.rules.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}

	late := s.show(t, begun.Sid)
	if late.Status != "absent" {
		t.Errorf("a recording without changes for 25 hours is %s, want absent", late.Status)
	}
	wantText(t, "error_code", late.Error, recordings.NoAudio)
	if late.Price != nil {
		t.Errorf("an absent recording has the price %s, want none", *late.Price)
	}
	if got := s.show(t, other.Sid).Status; got != "paused" {
		t.Errorf("a recording that changed two hours ago is %s, want paused", got)
	}

	wantError(t, "media of an absent recording", s.do(t, "GET", s.path("/Recordings/"+begun.Sid+".wav")), 404, 20404)
	wantError(t, "starting an absent recording", s.post(t, "/Calls/c/Recordings", ""), 400, 21220)
	if sid := s.upload(t, speech, "CallSid=c"); sid == begun.Sid {
		t.Errorf("an upload after that has the Sid %s, want a new one", sid)
	}

	deleted := s.do(t, "DELETE", s.path("/Recordings/"+other.Sid), s.basic)
	wantStatus(t, "DELETE of a pending recording", deleted, 204)
	if sid := s.upload(t, speech, "CallSid=d"); sid == other.Sid {
		t.Errorf("an upload completes %s, which was deleted", sid)
	}
}
