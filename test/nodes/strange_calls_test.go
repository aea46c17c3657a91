package nodes

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/test/harness"
	"github.com/selvage/selvage/test/phone"
)

// verto sends a verto message about a call, and returns the code of the response.
func verto(t *testing.T, s *harness.Socket, call, node, method string, dialog map[string]any) string {
	t.Helper()
	dialog["callID"] = call
	r := s.Call(t, "webrtc.verto", map[string]any{
		"callID":  call,
		"node_id": node,
		"message": map[string]any{
			"method": method,
			"params": map[string]any{"sdp": "v=0", "dialogParams": dialog},
		},
	})
	var result struct{ Code string }
	if err := json.Unmarshal(r.Result, &result); err != nil || r.Error != nil {
		t.Fatalf("%s returned %+v %s", method, r.Error, r.Result)
	}
	return result.Code
}

// TestAttachFlood shows that a client that repeatedly attaches to unknown calls is rate-limited,
// because each attempt searches all nodes. Five attempts are permitted immediately, and then one per
// second.
func TestAttachFlood(t *testing.T) {
	n := two(t)
	s, _ := n.Each[0].Connect(t, n.NewProject(t).NewSAT(t, "alice").Token, "")
	codes := make(map[string]int)
	began := time.Now()
	for range 30 {
		codes[verto(t, s, uuid.NewString(), "", "verto.invite", map[string]any{"attach": true})]++
	}

	most := 6 + int(time.Since(began)/time.Second)
	if codes["200"] < 5 || codes["200"] > most || codes["200"]+codes["429"] != 30 {
		t.Errorf("the codes of the answers are %v, want 5 to %d times 200, and otherwise 429", codes, most)
	}
}

// TestStrangeNodes shows that a command for a node with an unknown or impossible name is answered
// like a command for an unknown call. If the server tried to ask such a node, the answer would say
// that the node did not respond.
func TestStrangeNodes(t *testing.T) {
	sessionless := harness.Config{Env: []string{"SELVAGE_SESSIONS="}}
	n := harness.StartNodes(t, nil, sessionless, sessionless)
	s, _ := n.Each[0].Connect(t, n.NewProject(t).NewSAT(t, "alice").Token, "")
	want := verto(t, s, uuid.NewString(), "", "verto.info", map[string]any{})
	for _, node := range []string{"\x00", "a\nb", strings.Repeat("x", 10_000), uuid.NewString(),
		"{" + uuid.NewString() + "}", strings.ToUpper(uuid.NewString())} {
		if got := verto(t, s, uuid.NewString(), node, "verto.info", map[string]any{}); got != want {
			t.Errorf("a command for the node %.40q returned the code %s, want %s", node, got, want)
		}
	}
}

// TestSocketOfOthers shows that the events of a subscriber's calls still reach that subscriber
// after another subscriber has connected with the protocol of the first subscriber's socket.
func TestSocketOfOthers(t *testing.T) {
	n := two(t)
	p := newPeople(t, n)
	here, there := p.phones(t, n)
	alice, bob := phone.Talk(here, there, "/private/bob")
	phone.HearBoth(alice, bob)

	phone.Connect(t, n.Each[1], p.NewSAT(t, "mallory").Token, there.Protocol)
	n.Each[0].Kill()
	if cause := bob.WaitEnded(); cause != "NODE_LOST" {
		t.Errorf("bob's call ended with %s, want NODE_LOST", cause)
	}
}

// TestHungUpElsewhere shows that a node forgets a call on another node when its own client's part
// in the call ends.
func TestHungUpElsewhere(t *testing.T) {
	n := two(t)
	p := newPeople(t, n)
	here, there := p.phones(t, n)
	const metric = "\nselvage_call_legs_elsewhere "
	counts := func(s *harness.Server, line string) bool {
		return bytes.Contains(s.Get(t, s.Ops+"/metrics").Want(t, 200).Body, []byte(line))
	}

	for name, end := range map[string]func(alice, bob *phone.Call){
		"the caller hangs up": func(alice, _ *phone.Call) { alice.Hangup() },
		"the callee hangs up": func(_, bob *phone.Call) { bob.Hangup() },
	} {
		t.Run(name, func(t *testing.T) {
			alice, bob := phone.Talk(here, there, "/private/bob")
			if !counts(n.Each[1], metric+"1\n") {
				t.Error("the other node does not count the call")
			}
			end(alice, bob)
			harness.Eventually(t, soon, "the other node to forget the call", func() error {
				if !counts(n.Each[1], metric+"0\n") {
					return errors.New("the node still counts the call")
				}
				return nil
			})
		})
	}
}
