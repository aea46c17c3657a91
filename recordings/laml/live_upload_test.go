package laml_test

import (
	"slices"
	"sync"
	"testing"
	"time"
)

// TestLiveRecording shows that an upload completes the announced recording of its call.
func TestLiveRecording(t *testing.T) {
	s := newServer(t)
	begun := s.announce(t, "CallSid=c&From=/private/alice")
	s.post(t, "/Calls/c/Recordings.json", "RecordingChannels=dual&Trim=trim-silence")
	s.post(t, "/Calls/c/Recordings/"+begun.Sid+".json", "Status=stopped")

	s.clock.set(s.clock.now().Add(time.Minute))
	wav := corpusFile(t, speech)
	up := s.sendWAV(t, "CallSid=c&To=/private/bob", wav)
	wantLive(t, "the upload", up, 201, begun.Sid)

	done := read[live](t, up)
	if done.Status != "completed" || done.Duration != 6 {
		t.Errorf("the recording is %s with %d s, want it completed with 6 s", done.Status, done.Duration)
	}
	if done.End == nil {
		t.Error("end_time is null, want a time")
	}
	if done.Trim != "trim-silence" {
		t.Errorf("the recording has the trim %q, want trim-silence", done.Trim)
	}
	wantText(t, "price", done.Price, "-0.0025")
	wantText(t, "media.from", done.Media.From, "/private/alice")

	media := s.do(t, "GET", s.path("/Recordings/"+begun.Sid+".wav"))
	wantStatus(t, "the media", media, 200)
	wantFile(t, "the media", media, wav)
}

// complete announces a recording of the call c from Alice, uploads its media and returns its Sid.
func (s *server) complete(t *testing.T) (sid string) {
	t.Helper()
	sid = s.announce(t, "CallSid=c&From=/private/alice").Sid
	wantLive(t, "the upload", s.sendWAV(t, "CallSid=c", corpusFile(t, speech)), 201, sid)
	return sid
}

// sendWAV uploads a file with a query.
func (s *server) sendWAV(t *testing.T, query string, file []byte) answer {
	t.Helper()
	return s.do(t, "POST", s.path("/Recordings?"+query), s.basic, body("audio/wav", file))
}

// TestRepeatedUpload shows that repeating an upload returns the recording of the first upload.
func TestRepeatedUpload(t *testing.T) {
	s := newServer(t)
	sid := s.complete(t)
	wantLive(t, "a second upload", s.sendWAV(t, "CallSid=c", corpusFile(t, speech)), 200, sid)
}

// TestEndedCall shows that a completed recording cannot be stopped, and that its call cannot be
// recorded again.
func TestEndedCall(t *testing.T) {
	s := newServer(t)
	sid := s.complete(t)
	stopped := s.post(t, "/Calls/c/Recordings/"+sid, "Status=stopped")
	wantError(t, "stopping a completed recording", stopped, 400, 21220)
	wantError(t, "starting after the call has ended", s.post(t, "/Calls/c/Recordings", ""), 400, 21220)
}

// TestAnnouncedParty shows that a subscriber sees a recording whose announcement named an address of
// the subscriber.
func TestAnnouncedParty(t *testing.T) {
	s := newServer(t)
	sid := s.complete(t)
	seen := read[list](t, s.do(t, "GET", s.path("/Recordings"), asSubscriber)).sids()
	if !slices.Equal(seen, []string{sid}) {
		t.Errorf("the subscriber sees %q, want %s", seen, sid)
	}
}

// TestLiveMediaFiles shows that a sweep keeps the media of an announced recording, and that deleting
// the recording removes the media.
func TestLiveMediaFiles(t *testing.T) {
	s := newServer(t)
	sid := s.complete(t)
	if err := s.rules.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s.mediaFiles(t) == 0 {
		t.Error("after a sweep there are no files, want those of the recording")
	}

	wantStatus(t, "DELETE", s.do(t, "DELETE", s.path("/Recordings/"+sid), s.basic), 204)
	if n := s.mediaFiles(t); n != 0 {
		t.Errorf("%d files are left, want none", n)
	}
}

// TestTrackRecording shows that each track of a call has its own recording.
func TestTrackRecording(t *testing.T) {
	s := newServer(t)
	both := s.announce(t, "CallSid=c")
	inbound := read[live](t, s.post(t, "/Calls/c/Recordings", "RecordingTrack=inbound"))
	if inbound.Sid == both.Sid {
		t.Errorf("another track has the same Sid %s, want its own", inbound.Sid)
	}
	if inbound.Status != "in-progress" {
		t.Errorf("another track is %s, want in-progress", inbound.Status)
	}

	again := s.do(t, "POST", s.path("/Recordings?CallSid=c&Track=inbound&Status=in-progress"), s.basic)
	wantLive(t, "announcing a live recording", again, 200, inbound.Sid)
	up := s.sendWAV(t, "CallSid=c&Track=inbound", corpusFile(t, speech))
	wantLive(t, "the upload of the track", up, 201, inbound.Sid)
}

// TestRecordingInParts shows that a call can be recorded in several parts. Uploads complete the
// oldest part first.
func TestRecordingInParts(t *testing.T) {
	s := newServer(t)
	first := s.announce(t, "CallSid=c")
	s.post(t, "/Calls/c/Recordings/"+first.Sid, "Status=stopped")
	s.clock.set(s.clock.now().Add(time.Second))
	second := read[live](t, s.post(t, "/Calls/c/Recordings", ""))
	if second.Sid == first.Sid {
		t.Errorf("the second part has the Sid %s of the first, want its own", second.Sid)
	}
	if second.Status != "in-progress" {
		t.Errorf("the second part is %s, want in-progress", second.Status)
	}

	wantLive(t, "the first upload", s.sendWAV(t, "CallSid=c", corpusFile(t, "canonical_44.wav")), 201, first.Sid)
	wantLive(t, "the second upload", s.sendWAV(t, "CallSid=c", corpusFile(t, speech)), 201, second.Sid)
}

// TestUploadBySid shows that an upload with a Sid completes the recording that it names.
func TestUploadBySid(t *testing.T) {
	s := newServer(t)
	first := s.announce(t, "CallSid=c")
	s.post(t, "/Calls/c/Recordings/"+first.Sid, "Status=stopped")
	second := s.announce(t, "CallSid=c")

	wav := corpusFile(t, speech)
	wantLive(t, "the upload by Sid", s.sendWAV(t, "RecordingSid="+second.Sid, wav), 201, second.Sid)
	wantLive(t, "the same upload again", s.sendWAV(t, "RecordingSid="+second.Sid, wav), 200, second.Sid)
	if got := s.show(t, first.Sid); got.Status != "stopped" {
		t.Errorf("the other recording is %s, want it stopped", got.Status)
	}
}

func TestUploadByWrongSid(t *testing.T) {
	s := newServer(t)
	begun := s.announce(t, "CallSid=c")
	wav := corpusFile(t, speech)
	wantError(t, "an unknown Sid", s.sendWAV(t, "RecordingSid="+s.project, wav), 400, 10000)
	wantError(t, "the Sid of another call", s.sendWAV(t, "CallSid=d&RecordingSid="+begun.Sid, wav), 400, 10000)

	owner := s.project
	s.project = s.addProject(t)
	wantError(t, "the Sid of another project", s.sendWAV(t, "RecordingSid="+begun.Sid, wav), 400, 10000)
	s.project = owner
	if got := s.show(t, begun.Sid); got.Status != "in-progress" {
		t.Errorf("after the refused uploads, the recording is %s, want in-progress", got.Status)
	}
}

// TestLiveAtOnce shows that concurrent announcements, starts and uploads of the same recording
// create only one recording.
func TestLiveAtOnce(t *testing.T) {
	s := newServer(t)
	wav := corpusFile(t, speech)
	announced := atOnce(t, "announcing", func() answer {
		return s.do(t, "POST", s.path("/Recordings?Status=in-progress&CallSid=c"), s.basic)
	})
	atOnce(t, "starting", func() answer {
		return s.do(t, "POST", s.path("/Calls/c/Recordings"), s.basic)
	})
	completed := atOnce(t, "uploading", func() answer {
		return s.sendWAV(t, "CallSid=c", wav)
	})
	if completed != announced {
		t.Errorf("the uploads complete %s, want %s", completed, announced)
	}

	stored := read[list](t, s.do(t, "GET", s.path("/Recordings"), s.basic))
	if n := len(stored.Recordings); n != 1 {
		t.Errorf("%d recordings, want 1", n)
	}
	if s.mediaFiles(t) == 0 {
		t.Error("there are no files, want those of the recording")
	}
}

// atOnce sends a request 50 times concurrently, and returns the Sid of the recording in all
// responses.
func atOnce(t *testing.T, name string, send func() answer) (sid string) {
	t.Helper()
	var requests sync.WaitGroup
	answers := make([]answer, 50)
	for i := range answers {
		requests.Go(func() { answers[i] = send() })
	}
	requests.Wait()

	for _, a := range answers {
		if a.StatusCode > 201 {
			t.Fatalf("%s = %d %s, want 200 or 201", name, a.StatusCode, a.body)
		}
		got := read[live](t, a).Sid
		if sid != "" && got != sid {
			t.Fatalf("%s returns the recordings %s and %s, want only one recording", name, sid, got)
		}
		sid = got
	}
	return sid
}
