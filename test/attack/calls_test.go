package attack

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/test/harness"
	"github.com/selvage/selvage/test/phone"
)

// TestCallInput shows that calls with unusual IDs and addresses are refused and leave no records.
func TestCallInput(t *testing.T) {
	s := harness.Shared(t)
	p := s.NewProject(t)
	socket, _ := s.Connect(t, p.NewSAT(t, "alice").Token, "")

	id := uuid.NewString()
	for name, tt := range map[string]struct{ id, to string }{
		"an id with control characters":            {"\n" + id + "\n", "/public/echo"},
		"an id in braces":                          {"{" + id + "}", "/public/echo"},
		"an upper-case URN":                        {"URN:UUID:" + strings.ToUpper(id), "/public/echo"},
		"a long address":                           {id, "/private/" + strings.Repeat("x", 300)},
		"an address with a line break":             {id, "/private/bob\r\nx"},
		"an address with a right-to-left override": {id, "/private/\u202ebob"},
		"an address with a zero-width space":       {id, "/private/bob\u200b"},
		"an address with a line separator":         {id, "/private/bob\u2028x"},
	} {
		r := socket.Call(t, "webrtc.verto", map[string]any{
			"callID": tt.id,
			"message": map[string]any{
				"method": "verto.invite",
				"params": map[string]any{
					"sdp":          "v=0",
					"dialogParams": map[string]any{"callID": tt.id, "destination_number": tt.to},
				},
			},
		})
		var result struct{ Code, Message string }
		if err := json.Unmarshal(r.Result, &result); err != nil || result.Code != "400" ||
			!strings.Contains(result.Message, "must") {
			t.Errorf("%s: got %s, want code 400 and a message that names the fault", name, r.Result)
		}
	}

	var list struct{ Calls []any }
	p.Get(t, p.LaML("/Calls.json"), p.Basic()).Want(t, 200).Read(t, &list)
	if len(list.Calls) > 0 {
		t.Errorf("the refused calls left the records %v, want none", list.Calls)
	}
}

// TestMuteFlood shows that a mute command with thousands of channels does not make the server close
// the sockets of the call's parties.
func TestMuteFlood(t *testing.T) {
	s := harness.Shared(t)
	p := s.NewProject(t)
	alice := phone.Connect(t, s, p.NewSAT(t, "alice").Token, "")
	bob := phone.Connect(t, s, p.NewSAT(t, "bob").Token, "").Online()
	from, at := phone.Talk(alice, bob, "/private/bob")

	from.Command("call.mute", map[string]any{"channels": slices.Repeat([]string{""}, 20_500)})
	phone.HearBoth(from, at)
	for _, c := range []*phone.Call{from, at} {
		c.Hold(true)
		c.Hold(false)
	}
	phone.Hear(from, at)
}

// TestRingAfterRevocation shows that a call rings, and can be answered, even if earlier tokens of
// the callee were revoked, and even if another subscriber's token is revoked while it rings.
func TestRingAfterRevocation(t *testing.T) {
	s := harness.Shared(t)
	p := s.NewProject(t)
	old, carol := p.NewSAT(t, "bob"), p.NewSAT(t, "carol")
	s.Do(t, "DELETE", "/api/fabric/resources/subscribers/"+old.SubscriberID+"/tokens", p.Basic()).Want(t, 204)

	alice := phone.Connect(t, s, p.NewSAT(t, "alice").Token, "")
	bob := phone.Connect(t, s, p.NewSAT(t, "bob").Token, "").Online()
	echo := phone.Connect(t, s, carol.Token, "").Dial("/public/echo")
	echo.WaitAnswered()
	from := alice.Dial("/private/bob")
	at := bob.WaitRing()

	s.Command(t, carol.Token, "token", "revoke")
	// When carol's call has ended, the server has checked the tokens of all legs.
	harness.Eventually(t, time.Minute, "carol's call to end", func() error {
		var call struct{ Status string }
		p.Get(t, p.LaML("/Calls/"+echo.ID+".json"), p.Basic()).Want(t, 200).Read(t, &call)
		if call.Status != "completed" {
			return fmt.Errorf("the call's status is %s, want completed", call.Status)
		}
		return nil
	})
	at.Answer()
	from.WaitAnswered()
	phone.Hear(from, at)
}

// dial calls an address with an invalid SDP offer, and returns the code of the response: 400, or 429
// above a limit.
func dial(t *testing.T, s *harness.Socket, to string) string {
	t.Helper()
	id := uuid.NewString()
	r := s.Call(t, "webrtc.verto", map[string]any{
		"callID": id,
		"message": map[string]any{
			"method": "verto.invite",
			"params": map[string]any{
				"sdp":          "v=0",
				"dialogParams": map[string]any{"callID": id, "destination_number": to},
			},
		},
	})
	var result struct{ Code string }
	if err := json.Unmarshal(r.Result, &result); err != nil {
		t.Fatalf("dialing returned %s", r.Result)
	}
	return result.Code
}

// TestMintedCallers shows that a client cannot exceed the limits on calls by creating more tokens
// and dialing once with each token.
func TestMintedCallers(t *testing.T) {
	s := harness.Shared(t)
	p := s.NewProject(t)
	alice := p.NewSAT(t, "alice")
	address := p.Address(t, alice.SubscriberID)
	key := p.CLI(t, "", "token", "embed", "--address", address)["token"]

	for name, mint := range map[string]func() string{
		"invites of a subscriber": func() string { return p.NewInvite(t, alice.Token, address) },
		"tokens of an embed key that dial other addresses": func() string {
			token, _ := s.Post(t, "/api/fabric/embeds/tokens",
				harness.JSON(map[string]any{"token": key})).Want(t, 201).Object(t)["token"].(string)
			return token
		},
	} {
		t.Run(name, func(t *testing.T) {
			codes := make(map[string]int)
			deadline := time.Now().Add(time.Minute)
			for codes["429"] < 5 && time.Now().Before(deadline) { // the limit permits one call a second
				socket, _ := s.Connect(t, mint(), "")
				codes[dial(t, socket, "/private/bob")]++
			}
			if codes["400"] < 5 || codes["429"] < 5 {
				t.Errorf("response codes: got %v, want at least five each of 400 and 429", codes)
			}
		})
	}
}
