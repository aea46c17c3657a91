package clients

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
	telephone "github.com/selvage/selvage/test/phone"
)

// roomRecorded shows that a room with record_on_start records everybody and tells its members. A
// single member can be recorded on request.
func roomRecorded(alice, bob, carol *phone) {
	t, p := alice.T, alice.project
	address := newRoom(alice, "recorded", map[string]any{"record_on_start": true})
	enterRoom(address+"?channel=audio", false, alice, bob, carol)
	for _, f := range []*phone{alice, bob, carol} {
		f.do("until(() => rooms.at(-1)?.recording)", nil)
	}

	var member string
	bob.do("call.callId", &member)
	one := p.Post(t, p.LaML("/Calls/"+member+"/Recordings"), p.Basic(),
		harness.Form(url.Values{})).Want(t, 201).Object(t)
	carol.do(fmt.Sprintf("hearAll([%d, %d], [%d])", alice.hz, bob.hz, carol.hz), nil)
	alice.do("pass(2)", nil)
	all := recordingOfRoom(t, p, openRoomSession(t, p))
	if all["status"] != "in-progress" {
		t.Errorf("the recording of the room is %v, want the status in-progress", all)
	}

	for _, f := range []*phone{alice, bob, carol} {
		f.do("call.hangup()", nil)
	}

	whole := mono(t, waitFinished(t, p, fmt.Sprint(all["sid"])))
	for _, f := range []*phone{alice, bob, carol} {
		wantTone(t, "the recording of the room", whole, f.hz, 2500)
	}
	alone := mono(t, waitFinished(t, p, fmt.Sprint(one["sid"])))
	wantTone(t, "the recording of a member", alone, bob.hz, alice.hz)
	wantTone(t, "the recording of a member", alone, bob.hz, carol.hz)
}

// openRoomSession returns the ID of a project's newest open room session.
func openRoomSession(t *testing.T, p *harness.Project) string {
	t.Helper()
	var page struct{ Data []struct{ ID string } }
	p.Get(t, "/api/fabric/room_sessions?state=in-progress", p.Basic()).Want(t, 200).Read(t, &page)
	if len(page.Data) == 0 {
		t.Fatal("no room session is open")
	}
	return page.Data[0].ID
}

// recordingOfRoom returns the newest recording of a room session.
func recordingOfRoom(t *testing.T, p *harness.Project, session string) map[string]any {
	t.Helper()
	var list struct{ Recordings []map[string]any }
	p.Get(t, p.LaML("/Conferences/"+session+"/Recordings.json"), p.Basic()).Want(t, 200).Read(t, &list)
	if len(list.Recordings) == 0 {
		t.Fatal("the room session has no recording")
	}
	return list.Recordings[0]
}

// waitFinished waits until a recording is completed and returns it as a WAV file.
func waitFinished(t *testing.T, p *harness.Project, sid string) []byte {
	t.Helper()
	harness.Eventually(t, time.Minute, "the recording to be completed", func() error {
		rec := p.Get(t, p.LaML("/Recordings/"+sid+".json"), p.Basic()).Want(t, 200).Object(t)
		if rec["status"] != "completed" {
			return fmt.Errorf("the recording's status is %v, want completed", rec["status"])
		}
		if fmt.Sprint(rec["channels"]) != "1" {
			t.Fatalf("the recording has %v channels, want 1", rec["channels"])
		}
		return nil
	})
	return p.Get(t, p.LaML("/Recordings/"+sid+".wav"), p.Basic()).Want(t, 200).Body
}

// mono decodes a recording that has one channel. It uses ffmpeg.
func mono(t *testing.T, wav []byte) []float64 {
	t.Helper()
	left, _ := channels(t, wav)
	return left
}

// TestRoomRecording shows that a backend can start, pause, resume and stop the recording of a room
// session. If the room session ends first, its recording is completed.
func TestRoomRecording(t *testing.T) {
	harness.OneBackend(t)
	harness.Need(t, "ffmpeg")
	s := harness.StartConfig(t, harness.Config{Env: []string{harness.AllowLocal}})
	p, hook := s.NewProject(t), harness.NewReceiver(t)
	p.NewWebhook(t, hook.URL, "room.recording.completed")
	address, _ := createRoom(t, p, "recorded", nil)
	alice := telephone.Connect(t, s, p.NewSAT(t, "alice").Token, "").G711().Dial(address)
	bob := telephone.Connect(t, s, p.NewSAT(t, "bob").Token, "").G711().Dial(address)
	for _, c := range []*telephone.Call{alice, bob} {
		c.WaitAnswered()
	}

	session := openRoomSession(t, p)
	list := p.LaML("/Conferences/" + session + "/Recordings")
	for _, wrong := range []url.Values{{"RecordingChannels": {"dual"}}, {"RecordingTrack": {"inbound"}}} {
		p.Post(t, list, p.Basic(), harness.Form(wrong)).Want(t, 400)
	}

	sid := fmt.Sprint(p.Post(t, list, p.Basic(), harness.Form(url.Values{})).Want(t, 201).Object(t)["sid"])
	again := p.Post(t, list, p.Basic(), harness.Form(url.Values{})).Want(t, 201).Object(t)
	if again["sid"] != sid {
		t.Errorf("a second start returned the recording %v, want the one in progress", again["sid"])
	}

	alice.Speak(440)
	for range 50 { // packets of 20 ms
		bob.WaitSound(true)
	}
	item := list + "/" + sid
	for _, status := range []string{"paused", "in-progress", "stopped"} {
		p.Post(t, item, p.Basic(), harness.Form(url.Values{"Status": {status}})).Want(t, 200)
	}
	samples := mono(t, waitFinished(t, p, sid))
	wantTone(t, "the recording", samples, 440, 1000)

	next := fmt.Sprint(p.Post(t, list+".json", p.Basic(), harness.Form(url.Values{})).Want(t, 201).Object(t)["sid"])
	carol := telephone.Connect(t, s, p.NewSAT(t, "carol").Token, "").G711().Dial(address)
	carol.WaitAnswered()
	for range 25 { // Carol hears what is recorded; a recording without any sound would not be stored
		carol.WaitSound(true)
	}
	p.Post(t, "/api/fabric/room_sessions/"+session+"/end", p.Basic()).Want(t, 204)
	alice.WaitEnded()
	waitFinished(t, p, next)
	p.Post(t, list, p.Basic(), harness.Form(url.Values{})).Want(t, 400)
	harness.Eventually(t, time.Minute, "the events of both recordings", func() error {
		if got := hook.Told(); len(got) < 2 || got[0].Data.ID != session || got[1].Data.ID != session {
			return fmt.Errorf("%d events were delivered, want one for each recording", len(got))
		}
		return nil
	})
}
