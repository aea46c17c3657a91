package attack

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/test/harness"
	"github.com/selvage/selvage/test/phone"
)

// An envelope is the response to a verto message.
type envelope struct {
	Code, Message string
	Result        struct{ Result struct{ Message string } }
}

// verto sends a verto message and returns its response. Any error fails the test.
func verto(t *testing.T, s *harness.Socket, method, call string, params map[string]any) (e envelope) {
	t.Helper()
	dialog, _ := params["dialogParams"].(map[string]any)
	all := map[string]any{"callID": call}
	maps.Copy(all, dialog)
	params["dialogParams"] = all
	r := s.Call(t, "webrtc.verto", map[string]any{"callID": call,
		"message": map[string]any{"jsonrpc": "2.0", "id": uuid.NewString(), "method": method, "params": params}})
	if r.Error != nil {
		t.Errorf("%s: got the error %+v, want none, because SDKs would repeat the message", method, r.Error)
	} else if err := json.Unmarshal(r.Result, &e); err != nil {
		t.Errorf("%s: the answer is %s: %v", method, r.Result, err)
	}
	return e
}

// offer returns a browser's offer for an audio call. more contains additional lines for the audio
// section.
func offer(more ...string) string {
	return strings.Join(append([]string{
		"v=0", "o=- 1 2 IN IP4 127.0.0.1", "s=-", "t=0 0", "m=audio 9 UDP/TLS/RTP/SAVPF 111", "c=IN IP4 0.0.0.0",
		"a=mid:0", "a=sendrecv", "a=rtcp-mux", "a=rtpmap:111 opus/48000/2", "a=setup:actpass",
		"a=ice-ufrag:abcd", "a=ice-pwd:abcdefghijklmnopqrstuvwx",
		"a=fingerprint:sha-256 " + strings.TrimSuffix(strings.Repeat("AB:", 32), ":"),
	}, more...), "\r\n") + "\r\n"
}

// TestHostileDescriptions sends hostile media descriptions while two other clients talk. Each
// description is refused with a reason or starts an ordinary call. The other clients are not
// affected.
func TestHostileDescriptions(t *testing.T) {
	s := harness.Shared(t)
	p := s.NewProject(t)
	alice := phone.Connect(t, s, p.NewSAT(t, "alice").Token, "")
	bob := phone.Connect(t, s, p.NewSAT(t, "bob").Token, "").Online()
	from, at := phone.Talk(alice, bob, "/private/bob")

	candidate := "a=candidate:1 1 udp 2122260223 192.0.2.1 9 typ host"
	sections := offer() + strings.Repeat("m=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:1\r\n", 500)
	for name, sdp := range map[string]string{
		"nothing":              "",
		"60 KiB of one letter": strings.Repeat("a", 60<<10),
		"line breaks":          strings.Repeat("\r\n", 14<<10),
		"a long attribute":     offer("a=x:" + strings.Repeat("y", 50<<10)),
		"500 sections":         sections,
		"500 codecs":           offer(strings.Split(strings.Repeat("a=rtpmap:111 opus/48000/2\n", 500), "\n")...),
		"a section of nothing": "v=0\r\nm=\r\nm=audio\r\nm=audio x y z\r\n",
		"control characters":   offer("a=mid:\x00\x01\x1b"),
		"no fingerprint":       strings.ReplaceAll(offer(), "a=fingerprint", "a=x"),
		"no password":          strings.ReplaceAll(offer(), "a=ice-pwd", "a=x"),
		"a negative port":      strings.ReplaceAll(offer(), "audio 9", "audio -9"),
	} {
		socket, _ := s.Connect(t, p.NewSAT(t, name).Token, "")
		e := verto(t, socket, "verto.invite", uuid.NewString(),
			map[string]any{"sdp": sdp, "dialogParams": map[string]any{"destination_number": "/public/echo"}})
		if e.Code != "400" && e.Code != "200" || e.Message == "" {
			t.Errorf("%s: the answer is %+v, want 200, or 400 with a reason", name, e)
		}
		socket.Call(t, "signalwire.ping", map[string]any{})
	}

	socket, _ := s.Connect(t, p.NewSAT(t, "candidates").Token, "")
	e := verto(t, socket, "verto.invite", uuid.NewString(), map[string]any{
		"sdp":          offer(slices.Repeat([]string{candidate}, 1000)...),
		"dialogParams": map[string]any{"destination_number": "/public/echo"}})
	if e.Code != "400" && e.Code != "200" {
		t.Errorf("a thousand candidates: the answer is %+v, want 400 or 200", e)
	}
	phone.HearBoth(from, at)
}

// TestStrangeCallIDs sends commands for unknown calls and for other clients' calls. The commands
// change nothing, and no response reveals who is in a call. Verto messages get the code 200,
// because SDKs repeat a message after any other response.
func TestStrangeCallIDs(t *testing.T) {
	s := harness.Shared(t)
	p := s.NewProject(t)
	alice := phone.Connect(t, s, p.NewSAT(t, "alice").Token, "")
	bob := phone.Connect(t, s, p.NewSAT(t, "bob").Token, "").Online()
	from, at := phone.Talk(alice, bob, "/private/bob")

	for who, project := range map[string]*harness.Project{"the same project": p, "another project": s.NewProject(t)} {
		socket, _ := s.Connect(t, project.NewSAT(t, "mallory").Token, "")
		for _, id := range []string{from.ID, at.ID, uuid.NewString(), "", "x", strings.Repeat("9", 10_000)} {
			for method, params := range map[string]map[string]any{
				"verto.answer": {"sdp": offer()},
				"verto.bye":    {"cause": "NORMAL_CLEARING"},
				"verto.modify": {"action": "hold"},
				"verto.info":   {"dtmf": "1"},
			} {
				if e := verto(t, socket, method, id, params); e.Code != "200" {
					t.Errorf("%s for the call %.40q, from %s: %+v, want 200", method, id, who, e)
				}
			}
			for _, method := range []string{"call.end", "call.mute", "call.member.list"} {
				r := socket.Call(t, method, map[string]any{"channels": []string{"audio"},
					"self": map[string]string{"call_id": id, "member_id": from.ID, "node_id": from.Node()}})
				if text := fmt.Sprintf("%s%+v", r.Result, r.Error); strings.Contains(text, "member_id") ||
					strings.Contains(text, "alice") {
					t.Errorf("%s for the call %.40q, from %s, revealed %s", method, id, who, text)
				}
			}
		}

		e := verto(t, socket, "verto.invite", from.ID, map[string]any{"sdp": offer(),
			"dialogParams": map[string]any{"attach": true, "reattaching": true}})
		if e.Code == "200" && strings.Contains(e.Result.Result.Message, "v=0") {
			t.Errorf("a stranger in %s attached to the call", who)
		}
	}
	phone.HearBoth(from, at)
}

// TestInviteFlood dials as fast as a socket can. Most attempts are refused with the code 429, and
// another call is not affected.
func TestInviteFlood(t *testing.T) {
	s := harness.Shared(t)
	p := s.NewProject(t)
	alice := phone.Connect(t, s, p.NewSAT(t, "alice").Token, "")
	bob := phone.Connect(t, s, p.NewSAT(t, "bob").Token, "").Online()
	from, at := phone.Talk(alice, bob, "/private/bob")

	socket, _ := s.Connect(t, p.NewSAT(t, "mallory").Token, "")
	began, codes := time.Now(), make(map[string]int)
	for range 80 {
		codes[verto(t, socket, "verto.invite", uuid.NewString(), map[string]any{"sdp": offer(),
			"dialogParams": map[string]any{"destination_number": "/private/bob"}}).Code]++
	}
	// Five calls may begin immediately, and then one per second.
	if most := 6 + int(time.Since(began).Seconds()); codes["200"] > most || codes["429"]+codes["200"] != 80 {
		t.Errorf("the codes are %v, want at most %d times 200, and otherwise 429", codes, most)
	}
	phone.HearBoth(from, at)
}

// TestForeignCalls shows that a call of another project cannot be found by its ID over LaML.
// [TestStrangeCallIDs] shows this for the relay. The tests of package dashboard show it for the
// dashboard.
func TestForeignCalls(t *testing.T) {
	s := harness.Shared(t)
	victim, stranger := s.NewProject(t), s.NewProject(t)
	alice := phone.Connect(t, s, victim.NewSAT(t, "alice").Token, "")
	bob := phone.Connect(t, s, victim.NewSAT(t, "bob").Token, "").Online()
	from, at := phone.Talk(alice, bob, "/private/bob")

	key := harness.Basic(stranger.ID, stranger.NewKey(t, allScopes...))
	for _, id := range []string{from.ID, at.ID} {
		for _, path := range []string{"/Calls/" + id, "/Calls/" + id + ".json"} {
			for _, method := range []string{"GET", "POST"} {
				form := harness.Form(map[string][]string{"Status": {"completed"}})
				if a := s.Do(t, method, stranger.LaML(path), key, form); a.Status != 404 {
					t.Errorf("%s %s of another project = %d, want 404", method, path, a.Status)
				}
				a := s.Do(t, method, victim.LaML(path), key, form)
				if !slices.Contains([]int{401, 403, 404}, a.Status) {
					t.Errorf("%s %s with another project's key = %d, want a refusal", method, path, a.Status)
				}
			}
		}

		recordings := stranger.LaML("/Calls/" + id + "/Recordings")
		a := s.Post(t, recordings, key, harness.Form(map[string][]string{}))
		if strings.Contains(string(a.Body), victim.ID) || strings.Contains(string(a.Body), "/private/") {
			t.Errorf("recording another project's call revealed %s", a.Body)
		}
	}

	for _, path := range []string{"/Calls.json", "/Recordings.json"} {
		if a := s.Get(t, stranger.LaML(path), key); strings.Contains(string(a.Body), "/private/") {
			t.Errorf("GET %s of another project revealed %s", path, a.Body)
		}
	}
	phone.HearBoth(from, at)
}

// TestMemberFlood raises and lowers a hand in a call from many sockets of one subscriber, faster
// than the other side can read the events. The other side's socket stays open.
func TestMemberFlood(t *testing.T) {
	s := harness.Shared(t)
	p := s.NewProject(t)
	mallory := p.NewSAT(t, "mallory").Token
	alice := phone.Connect(t, s, p.NewSAT(t, "alice").Token, "").Online()
	from, at := phone.Talk(phone.Connect(t, s, mallory, ""), alice, "/private/alice")
	phone.HearBoth(from, at)

	var flood sync.WaitGroup
	for range 40 {
		socket, _ := s.Connect(t, mallory, "")
		flood.Go(func() {
			for i := range 80 {
				method := []string{"call.raisehand", "call.lowerhand"}[i%2]
				_ = socket.Send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"%d","method":%q,"params":{"self":{"call_id":%q}}}`,
					i, method, from.ID)) // fails only if the server closed the socket
			}
			_, _ = socket.TryCall("signalwire.ping", map[string]any{}) // answered after all the other messages
		})
	}

	flood.Wait()
	alice.Online() // fails if the socket is closed
	phone.HearBoth(from, at)
}

// TestForeignLegs kills the server of a call and starts it again. Another subscriber then tries to
// dial, and to add a screen, with the IDs of the call's legs. Each attempt is refused. The call
// continues after both sides attach again.
func TestForeignLegs(t *testing.T) {
	s := harness.Start(t)
	p := s.NewProject(t)
	alice, bob, mallory := p.NewSAT(t, "alice").Token, p.NewSAT(t, "bob").Token, p.NewSAT(t, "mallory").Token
	at := phone.Connect(t, s, bob, "").Online()
	caller := phone.Connect(t, s, alice, "")
	from, to := phone.Talk(caller, at, "/private/bob")
	phone.HearBoth(from, to)
	s.Kill()
	s.Restart(t)

	socket, _ := s.Connect(t, mallory, "")
	own := uuid.NewString()
	verto(t, socket, "verto.invite", own, map[string]any{"sdp": offer(),
		"dialogParams": map[string]any{"destination_number": "/public/echo"}})
	for _, id := range []string{from.ID, to.ID} {
		for name, dialog := range map[string]map[string]any{
			"a call":   {"destination_number": "/public/echo"},
			"a screen": {"screenShare": true, "userVariables": map[string]string{"memberId": own}},
		} {
			e := verto(t, socket, "verto.invite", id, map[string]any{"sdp": offer(), "dialogParams": dialog})
			if e.Code != "409" {
				t.Errorf("%s with the id of somebody else's leg: %+v, want 409", name, e)
			}
		}
	}

	here, there := phone.Connect(t, s, alice, ""), phone.Connect(t, s, bob, "")
	here.Take(caller)
	there.Take(at)
	from, to = here.Attach(from), there.Attach(to)
	from.WaitAnswered()
	to.WaitAnswered()
	phone.HearBoth(from, to)
	p.Post(t, p.LaML("/Calls/"+from.ID), p.Basic(), harness.Form(map[string][]string{"Status": {"completed"}}))
	if cause := to.WaitEnded(); cause != "MANAGER_REQUEST" {
		t.Errorf("the call ended with %s, want MANAGER_REQUEST", cause)
	}
}
