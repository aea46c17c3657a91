package clients

import (
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
	telephone "github.com/selvage/selvage/test/phone"
)

// TestRecordTone shows that both sides of a recorded call hear a tone when the recording begins, at
// intervals while it runs, and when it resumes after a pause. The audit trail names the call once
// for the beginning of the recording and once for its end.
func TestRecordTone(t *testing.T) {
	harness.OneBackend(t)
	s := harness.StartConfig(t, harness.Config{Env: []string{"SELVAGE_CALLS__RECORD_TONE=5s"}})
	p := s.NewProject(t)
	alice, bob := telephone.Talk(telephone.Connect(t, s, p.NewSAT(t, "alice").Token, ""),
		telephone.Connect(t, s, p.NewSAT(t, "bob").Token, "").Online(), "/private/bob")
	telephone.HearBoth(alice, bob)
	file, err := os.ReadFile("../../calls/media/beep/opus")
	if err != nil {
		t.Fatal(err)
	}
	tone := string(file[:60])

	recordings := p.LaML("/Calls/" + alice.ID + "/Recordings")
	rec := p.Post(t, recordings, p.Basic(), harness.Form(url.Values{})).Want(t, 201).Object(t)
	item := recordings + "/" + rec["sid"].(string)
	for range 2 {
		alice.WaitHeard(tone)
		bob.WaitHeard(tone)
	}

	for _, status := range []string{"paused", "in-progress"} {
		p.Post(t, item, p.Basic(), harness.Form(url.Values{"Status": {status}})).Want(t, 200)
	}
	alice.WaitHeard(tone)
	bob.WaitHeard(tone)
	telephone.HearBoth(alice, bob)
	bob.Hangup()
	alice.WaitEnded()

	key := harness.Basic(p.ID, p.NewKey(t, "Management"))
	for _, action := range []string{"recording.started", "recording.stored"} {
		harness.Eventually(t, time.Minute, "the event "+action, func() error {
			return checkTrail(t, p, key, action, alice.ID)
		})
	}
}

// checkTrail returns an error unless the audit trail has exactly one event with the given action
// and call.
func checkTrail(t *testing.T, p *harness.Project, key harness.Option, action, call string) error {
	t.Helper()
	a := p.Get(t, "/api/fabric/audit?action="+action, key).Want(t, 200)
	if n := strings.Count(string(a.Body), call); n != 1 {
		return fmt.Errorf("the trail names the call %d times, want once: %s", n, a.Body)
	}
	return nil
}
