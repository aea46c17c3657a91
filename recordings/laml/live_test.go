package laml_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

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
	if begun.Status != "in-progress" || begun.Price != nil || begun.Duration != 0 || begun.End != nil ||
		begun.Media.MediaURL != nil ||
		begun.Start == nil || *begun.Start != s.clock.now().Format(time.RFC1123Z) || *begun.CallSid != "c" {
		t.Errorf("announced %+v, want it in progress since now, without media, end and price", begun)
	}

	for _, end := range []string{"", ".wav", ".mp3"} {
		a := s.do(t, "GET", s.path("/Recordings/"+begun.Sid+end))

		wantError(t, "the media of a live recording", a, 404, 20404)
		if retry := a.Header.Get("Retry-After"); retry != "5" {
			t.Errorf("the media of a live recording: Retry-After = %q, want 5", retry)
		}
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
	if got := read[live](t, started); started.StatusCode != 201 || got.Sid != begun.Sid ||
		got.Channels != "2" || got.Trim != "trim-silence" {
		t.Errorf("start = %d %+v, want 201 and the live recording with these settings", started.StatusCode, got)
	}

	kept, err := s.rules.Find(t.Context(), recordings.Owner{ProjectID: s.project}, begun.Sid)
	if want := (recordings.Callback{
		URL: "https://example.com/cb", Events: []string{"completed", "absent"}, Method: "GET",
	}); err != nil || fmt.Sprint(kept.Callback) != fmt.Sprint(want) {
		t.Errorf("the stored callback is %+v, %v, want %+v", kept.Callback, err, want)
	}
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
		if got := read[live](t, a); a.StatusCode != 200 || got.Status != move.status || got.Sid != begun.Sid {
			t.Errorf("%s = %d %+v, want 200 and %s", move.fields, a.StatusCode, got, move.status)
		}
		if kept, _ := s.rules.Find(
			t.Context(), recordings.Owner{ProjectID: s.project}, begun.Sid,
		); kept.PauseBehavior != move.pause {
			t.Errorf("%s: PauseBehavior = %q, want %q", move.fields, kept.PauseBehavior, move.pause)
		}
	}
	wantError(t, "resuming after the stop", s.post(t, "/Calls/c/Recordings/"+begun.Sid, "Status=in-progress"),
		400, 21220)
}

// TestLiveRecording shows that the media of an announced recording is stored once, under the Sid of
// the announcement, and that the upload completes the recording.
func TestLiveRecording(t *testing.T) {
	s := newServer(t)
	begun := s.announce(t, "CallSid=c&From=/private/alice")
	s.post(t, "/Calls/c/Recordings.json", "RecordingChannels=dual&Trim=trim-silence")
	s.post(t, "/Calls/c/Recordings/"+begun.Sid+".json", "Status=stopped")

	s.clock.set(s.clock.now().Add(time.Minute))
	up := s.do(t, "POST", s.path("/Recordings?CallSid=c&To=/private/bob"), s.basic,
		body("audio/wav", corpusFile(t, speech)))
	done := read[live](t, up)
	if up.StatusCode != 201 || done.Sid != begun.Sid || done.Status != "completed" || done.Duration != 6 ||
		done.Price == nil || *done.Price != "-0.0025" ||
		done.End == nil || done.Media.From == nil || *done.Media.From != "/private/alice" ||
		done.Trim != "trim-silence" {
		t.Errorf("the upload = %d %+v, want it to complete %s", up.StatusCode, done, begun.Sid)
	}

	if a := s.do(t, "GET", s.path("/Recordings/"+begun.Sid+".wav")); a.StatusCode != 200 ||
		string(a.body) != string(corpusFile(t, speech)) {
		t.Errorf("the media = %d with %d bytes, want the file", a.StatusCode, len(a.body))
	}

	again := s.do(t, "POST", s.path("/Recordings?CallSid=c&To=/private/bob"), s.basic,
		body("audio/wav", corpusFile(t, speech)))
	if again.StatusCode != 200 || read[live](t, again).Sid != begun.Sid {
		t.Errorf("a second upload = %d %s, want 200 and the same recording", again.StatusCode, again.body)
	}

	wantError(t, "stopping a completed recording", s.post(t, "/Calls/c/Recordings/"+begun.Sid, "Status=stopped"),
		400, 21220)
	wantError(t, "starting after the call has ended", s.post(t, "/Calls/c/Recordings", ""), 400, 21220)
	if seen := read[list](t, s.do(t, "GET", s.path("/Recordings"), asSubscriber)); len(seen.Recordings) != 1 {
		t.Errorf("the subscriber whose address was announced sees %q, want the recording", seen.sids())
	}
	if err := s.rules.Sweep(t.Context()); err != nil || s.mediaFiles(t) == 0 {
		t.Errorf("after a sweep there are %d files, %v, want the recording's", s.mediaFiles(t), err)
	}
	if a := s.do(t, "DELETE", s.path("/Recordings/"+begun.Sid), s.basic); a.StatusCode != 204 ||
		s.mediaFiles(t) != 0 {
		t.Errorf("DELETE = %d with %d files left, want 204 and none", a.StatusCode, s.mediaFiles(t))
	}
}

func TestConferenceRecording(t *testing.T) {
	s := newServer(t)
	begun := s.announce(t, "ConferenceSid=room")
	path := "/Conferences/room/Recordings/" + begun.Sid
	if got := read[live](t, s.post(t, path, "Status=paused")); got.Status != "paused" {
		t.Errorf("after Status=paused: %+v, want it paused", got)
	}
	wantError(t, "of another conference",
		s.post(t, "/Conferences/hall/Recordings/"+begun.Sid, "Status=paused"), 404, 20404)
	wantError(t, "as a call's recording", s.post(t, "/Calls/room/Recordings/"+begun.Sid, "Status=paused"), 404, 20404)
	wantError(t, "with an invalid status", s.post(t, path, "Status=completed"), 400, 10000)
	s.upload(t, speech, "ConferenceSid=room")
	if got := s.show(t, begun.Sid); got.Status != "completed" {
		t.Errorf("after the upload: %+v, want it completed", got)
	}
}

func TestStartForms(t *testing.T) {
	s := newServer(t)
	begun := s.announce(t, "CallSid=c")
	path := s.path("/Calls/c/Recordings")
	json := body("application/json", []byte(
		`{"RecordingStatusCallbackEvent":["in-progress","absent"],"RecordingStatusCallback":"http://x.example/",
			"RecordingChannels":"mono","TrackX":1}`))

	for name, o := range map[string]option{
		"nothing": func(*http.Request) {},
		"JSON":    json,
		"one field": body(formType, []byte(
			"RecordingStatusCallbackEvent=completed+absent&RecordingStatusCallback=http://x.example/")),
	} {
		if a := s.do(t, "POST", path, s.basic, o); a.StatusCode != 201 || read[live](t, a).Sid != begun.Sid {
			t.Errorf("start with %s = %d %s, want 201 and %s", name, a.StatusCode, a.body, begun.Sid)
		}
	}

	other := read[live](t, s.post(t, "/Calls/c/Recordings", "RecordingTrack=inbound"))
	if other.Sid == begun.Sid || other.Status != "in-progress" {
		t.Errorf("another track = %+v, want another recording", other)
	}
	if a := s.do(
		t, "POST", s.path("/Recordings?CallSid=c&Track=inbound&Status=in-progress"), s.basic,
	); a.StatusCode != 200 || read[live](t, a).Sid != other.Sid {
		t.Errorf("announcing a live recording = %d %s, want 200 and %s", a.StatusCode, a.body, other.Sid)
	}

	up := read[live](t, s.do(t, "POST", s.path("/Recordings?CallSid=c&Track=inbound"), s.basic,
		body("audio/wav", corpusFile(t, speech))))
	if up.Sid != other.Sid {
		t.Errorf("the upload of the track completes %s, want %s", up.Sid, other.Sid)
	}

	// A call can be recorded in several parts.
	s.post(t, "/Calls/c/Recordings/"+begun.Sid, "Status=stopped")
	s.clock.set(s.clock.now().Add(time.Second))
	second := read[live](t, s.post(t, "/Calls/c/Recordings", ""))
	if second.Sid == begun.Sid || second.Status != "in-progress" {
		t.Errorf("start after a stop = %+v, want another recording", second)
	}

	for i, want := range []string{begun.Sid, second.Sid} { // oldest first
		wav := corpusFile(t, []string{"canonical_44.wav", speech}[i])
		if got := read[live](
			t, s.do(t, "POST", s.path("/Recordings?CallSid=c"), s.basic, body("audio/wav", wav)),
		); got.Sid != want {
			t.Errorf("upload %d completes %s, want %s", i, got.Sid, want)
		}
	}
}

func TestUploadBySid(t *testing.T) {
	s := newServer(t)
	first := s.announce(t, "CallSid=c")
	s.post(t, "/Calls/c/Recordings/"+first.Sid, "Status=stopped")
	second := s.announce(t, "CallSid=c")
	by := func(query string) answer {
		return s.do(t, "POST", s.path("/Recordings?"+query), s.basic, body("audio/wav", corpusFile(t, speech)))
	}

	if a := by("RecordingSid=" + second.Sid); a.StatusCode != 201 || read[live](t, a).Sid != second.Sid {
		t.Errorf("the upload by Sid = %d %s, want %s", a.StatusCode, a.body, second.Sid)
	}
	if a := by("RecordingSid=" + second.Sid); a.StatusCode != 200 || read[live](t, a).Sid != second.Sid {
		t.Errorf("the same upload again = %d %s, want 200 and %s", a.StatusCode, a.body, second.Sid)
	}

	wantError(t, "an unknown Sid", by("RecordingSid="+s.project), 400, 10000)
	wantError(t, "the Sid of another call", by("CallSid=d&RecordingSid="+first.Sid), 400, 10000)
	home := s.project
	s.project = s.addProject(t)
	wantError(t, "the Sid of another project", by("RecordingSid="+first.Sid), 400, 10000)
	s.project = home
	if got := s.show(t, first.Sid); got.Status != "stopped" {
		t.Errorf("the recording that no upload named: %+v, want it stopped", got)
	}
}

func TestLiveIsRefused(t *testing.T) {
	s := newServer(t)
	begun := s.announce(t, "CallSid=c")
	move, start := "/Calls/c/Recordings/"+begun.Sid, "/Calls/c/Recordings"
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
		{"a stop, and no time for links", move + "?MediaUrlTtl=0", "Status=stopped", 400, 10000},
		{"another track, and no time for links", start + "?MediaUrlTtl=0", "RecordingTrack=inbound", 400, 10000},
		{"an unknown recording", "/Calls/c/Recordings/" + s.project, "Status=paused", 404, 20404},
		{"another call", "/Calls/d/Recordings/" + begun.Sid, "Status=paused", 404, 20404},
	}

	for _, tt := range tests {
		wantError(t, tt.name, s.post(t, tt.path, tt.fields), tt.status, tt.code)
	}

	for _, query := range []string{"Status=completed&CallSid=x", "Status=&CallSid=x", "Status=in-progress",
		"Status=in-progress&Status=in-progress&CallSid=x", "Status=in-progress&CallSid=x&Track=left"} {
		wantError(t, query, s.do(t, "POST", s.path("/Recordings?"+query), s.basic), 400, 10000)
	}

	wantError(t, "an announcement with a body",
		s.do(t, "POST", s.path("/Recordings?Status=in-progress&CallSid=x"), s.basic,
			body("audio/wav", corpusFile(t, speech))), 400, 10000)
	if a := s.do(t, "POST", s.path(start), s.basic, body("text/plain", []byte("x"))); a.StatusCode != 415 {
		t.Errorf("starting with a text body = %d, want 415", a.StatusCode)
	}
	if got := s.show(t, begun.Sid); got.Status != "in-progress" || got.Trim != "do-not-trim" {
		t.Errorf("the recording after all requests: %+v, want it in progress, not trimmed", got)
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
	begun, other := s.announce(t, "CallSid=c"), s.announce(t, "CallSid=d")
	s.clock.set(s.clock.now().Add(23 * time.Hour))
	s.post(t, "/Calls/d/Recordings/"+other.Sid, "Status=paused")
	s.clock.set(s.clock.now().Add(2 * time.Hour))
	if err := s.rules.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}

	if got := s.show(t, begun.Sid); got.Status != "absent" || got.Error == nil ||
		*got.Error != recordings.NoAudio || got.Price != nil {
		t.Errorf("a recording without changes for 25 hours: %+v, want it absent", got)
	}

	if got := s.show(t, other.Sid); got.Status != "paused" {
		t.Errorf("a recording that changed two hours ago: %+v, want it paused", got)
	}

	wantError(t, "media of an absent recording", s.do(t, "GET", s.path("/Recordings/"+begun.Sid+".wav")), 404, 20404)
	wantError(t, "starting an absent recording", s.post(t, "/Calls/c/Recordings", ""), 400, 21220)
	if late := s.upload(t, speech, "CallSid=c"); late == begun.Sid {
		t.Errorf("an upload after that is %s, want another recording", late)
	}
	if a := s.do(t, "DELETE", s.path("/Recordings/"+other.Sid), s.basic); a.StatusCode != 204 {
		t.Errorf("DELETE of a pending recording = %d, want 204", a.StatusCode)
	}
	if sid := s.upload(t, speech, "CallSid=d"); sid == other.Sid {
		t.Errorf("an upload completes %s, which was deleted", sid)
	}
}

// TestLiveAtOnce shows that concurrent announcements, starts and uploads of the same recording
// create only one recording.
func TestLiveAtOnce(t *testing.T) {
	s := newServer(t)
	wav := corpusFile(t, speech)
	each := func(what string, do func() answer) map[string]int {
		t.Helper()
		var wait sync.WaitGroup
		answers := make([]answer, 50)
		for i := range answers {
			wait.Go(func() { answers[i] = do() })
		}

		wait.Wait()
		sids := make(map[string]int)
		for _, a := range answers {
			if a.StatusCode > 201 {
				t.Fatalf("%s = %d %s, want 200 or 201", what, a.StatusCode, a.body)
			}
			sids[read[live](t, a).Sid]++
		}

		if len(sids) != 1 {
			t.Errorf("%s returned %d recordings, want one", what, len(sids))
		}
		return sids
	}

	announced := each("announcing", func() answer {
		return s.do(t, "POST", s.path("/Recordings?Status=in-progress&CallSid=c"), s.basic)
	})
	each("starting", func() answer { return s.do(t, "POST", s.path("/Calls/c/Recordings"), s.basic) })
	completed := each("uploading", func() answer {
		return s.do(t, "POST", s.path("/Recordings?CallSid=c"), s.basic, body("audio/wav", wav))
	})

	for sid := range announced {
		if completed[sid] == 0 {
			t.Errorf("the uploads complete %v, want %s", completed, sid)
		}
	}

	if n := len(read[list](t, s.do(t, "GET", s.path("/Recordings"), s.basic)).Recordings); n != 1 ||
		s.mediaFiles(t) == 0 {
		t.Errorf("%d recordings and %d files, want one", n, s.mediaFiles(t))
	}
}

func TestTranscriptions(t *testing.T) {
	s := newServer(t)
	sid := s.upload(t, speech, "")
	for _, end := range []string{"", ".json"} {
		a := s.do(t, "GET", s.path("/Recordings/"+sid+"/Transcriptions"+end), s.basic)
		list := s.path("/Recordings/" + sid + "/Transcriptions")
		want := `{"uri":"` + list + `?Page=0&PageSize=50","first_page_uri":"` + list + `?Page=0&PageSize=50",` +
			`"next_page_uri":null,"previous_page_uri":null,"page":0,"page_size":50,"transcriptions":[]}` + "\n"
		if a.StatusCode != 200 || string(a.body) != want {
			t.Errorf("transcriptions%s = %d %s, want %s", end, a.StatusCode, a.body, want)
		}
	}
}
