package sip_test

import (
	"bytes"
	"testing"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/recordings"
)

// TestScriptRecords makes a script record alice for two seconds. The recording of her whole call,
// which her settings require, continues.
func TestScriptRecords(t *testing.T) {
	var stored *recordings.Recordings
	w, h := newScripted(t, recordsInto(t, &stored),
		`{"verbs": [{"verb": "record", "seconds": 2}]}`,
		`{"verbs": [{"verb": "play", "url": "/tone.wav"}, {"verb": "play", "url": "/tone.wav"}]}`)
	w.recordsCalls("alice")

	alice := w.newPhone("alice")
	m := alice.answeredBy("menu")
	<-h.asked
	loud := string(bytes.Repeat([]byte{0x80, 0x00}, 80))
	var q question
	eventually(t, "the webhook to be asked again", func() bool {
		alice.say(alice.mediaOf(m), uint16(alice.seq), loud)
		alice.seq++
		select {
		case q = <-h.asked:
			return true
		default:
			return false
		}
	})
	if q.Last.RecordingSid == "" {
		t.Error("the result of the record verb has no Sid")
	}
	if want := (result{Verb: "record", RecordingSid: q.Last.RecordingSid}); q.Last != want {
		t.Errorf("the result is %+v, want %+v", q.Last, want)
	}
	if !w.lastCall().Recorded {
		t.Error("the recording of the whole call has ended")
	}
	whole := w.lastCall().RecordingSid // a whole Sid may be enough to fetch the recording
	if want := fabric.HideSid(whole); whole == "" || q.Call.RecordingSid != want {
		t.Errorf("the webhook got the Sid %s of the call's recording, want %s", q.Call.RecordingSid, want)
	}
	alice.hangsUp(m)
	w.isOver()

	filter := recordings.Filter{Owner: recordings.Owner{ProjectID: w.project}}
	eventually(t, "both recordings to be completed", func() bool {
		found := must[page.Page[recordings.Recording]](t)(
			stored.List(t.Context(), filter, page.Query{Size: 9})).Items
		done := map[string]bool{} // by track
		for _, r := range found {
			if r.Status == recordings.Completed && r.Duration() > 0 {
				done[r.Track] = true
			}
		}
		return len(found) == 2 && done["inbound"] && done["both"]
	})
}

// TestScriptRecordsNowhere shows the error of the record verb if the server stores no recordings.
func TestScriptRecordsNowhere(t *testing.T) {
	w, h := newScripted(t, nil, `{"verbs": [{"verb": "record", "seconds": 2}]}`)
	alice := w.newPhone("alice")
	r, m := alice.dial("menu")
	alice.send(alice.acknowledge(r, m))
	<-h.asked
	h.wasTold(t, result{Verb: "record", Error: "recordings_unavailable"})
}
