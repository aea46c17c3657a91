package clients

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/selvage/selvage/test/harness"
)

// TestJoin shows that a guest with a link can join a room on the page for guests, hear the room,
// and leave it. No URL that the page requests contains the token. If the token has been revoked,
// the page says that the link is no longer valid.
func TestJoin(t *testing.T) {
	harness.NotStorage(t)
	s := harness.Shared(t)
	p := s.NewProject(t)
	room := p.Post(t, "/api/fabric/resources/conference_rooms", p.Basic(),
		harness.JSON(map[string]any{"name": "lounge"})).Want(t, 201).Object(t)["id"].(string)
	var addresses struct{ Data []struct{ ID string } }
	p.Get(t, "/api/fabric/resources/"+room+"/addresses", p.Basic()).Want(t, 200).Read(t, &addresses)
	token, _ := p.Post(t, "/api/fabric/guests/tokens", p.Basic(), harness.JSON(map[string]any{
		"allowed_addresses": []string{addresses.Data[0].ID}})).Want(t, 201).Object(t)["token"].(string)
	link := func(token string) string {
		until := strconv.FormatInt(time.Now().Add(2*time.Hour).Unix(), 10)
		return s.PublicURL + "/join#" + url.Values{"token": {token}, "until": {until}}.Encode()
	}

	b := callTab(t, newHome(t))
	b.do(goTo(link(token)))
	b.until("the room", "document.querySelector('#join-name').textContent === 'lounge' && "+
		"!document.querySelector('#join-form').hidden && !document.querySelector('#join-until').hidden")
	b.picture("join")
	b.click("join-submit")
	b.until("the room's sound", "document.querySelector('#join-status').textContent === 'You have joined.' && "+
		"document.querySelector('#join-video').srcObject?.getAudioTracks().some((t) => !t.muted)")
	b.until("the note that nobody else is in the room", "!document.querySelector('#join-alone').hidden")
	var calls struct{ Calls []struct{ Status, To string } }
	harness.Eventually(t, patience, "the guest to be in the room", func() error {
		p.Get(t, p.LaML("/Calls.json"), p.Basic()).Want(t, 200).Read(t, &calls)
		if len(calls.Calls) != 1 || calls.Calls[0].Status != "in-progress" {
			return fmt.Errorf("the calls are %+v, want one in progress", calls.Calls)
		}
		return nil
	})

	b.click("join-mute")
	b.until("a muted microphone", "document.querySelector('#join-mute').textContent === 'Unmute'")
	b.picture("join-call")
	b.click("join-leave")
	b.until("the form", "!document.querySelector('#join-form').hidden && document.querySelector('#join-call').hidden")
	harness.Eventually(t, patience, "the call to end", func() error {
		p.Get(t, p.LaML("/Calls.json"), p.Basic()).Want(t, 200).Read(t, &calls)
		if calls.Calls[0].Status != "completed" {
			return fmt.Errorf("the call's status is %s, want completed", calls.Calls[0].Status)
		}
		return nil
	})

	// On a page without https, browsers offer no randomUUID.
	eval[bool](b, "delete Crypto.prototype.randomUUID")
	b.click("join-submit")
	b.until("the room again", "document.querySelector('#join-status').textContent === 'You have joined.'")
	b.click("join-leave")
	b.until("the form again",
		"!document.querySelector('#join-form').hidden && document.querySelector('#join-call').hidden")

	urls := eval[[]string](b, "performance.getEntries().map((e) => e.name.split('#')[0])")
	if strings.Contains(strings.Join(urls, " "), token) {
		t.Error("a URL that the page requested contains the token")
	}

	s.Command(t, token, "token", "revoke")
	harness.Eventually(t, patience, "the token to be revoked", func() error {
		a, err := s.Try("GET", "/api/fabric/addresses", harness.Bearer(token))
		if err != nil {
			return err
		}
		return a.StatusIs(401)
	})
	b.do(chromedp.Evaluate[chromedp.Void]("location.reload(); void 0"))
	b.until("the error", "document.querySelector('#join-error').textContent.includes('no longer valid') && "+
		"document.querySelector('#join-form').hidden")
}
