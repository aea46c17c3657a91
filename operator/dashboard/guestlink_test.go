package dashboard_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// TestRoomGuestLink shows that a room's page makes a link for guests with one button.
func TestRoomGuestLink(t *testing.T) {
	p := newTokenPages(t)
	kind := strings.TrimSuffix(p.base, "/tokens") + "/kinds/conference_rooms"
	room := p.post(kind, kind, url.Values{"name": {"Lounge"}}).Header.Get("Location")
	form := between(p.get(room).body, `class="row guests"`, "</form>")
	path := regexp.MustCompile(`name="allowed_addresses" value="([^"]+)"`).FindStringSubmatch(form)
	if path == nil || !strings.Contains(form, `id="guest-link"`) {
		t.Fatalf("the room's page has the form %q, want one that makes a guest link", form)
	}
	created := p.post(p.base+"/make/guest", p.base+"/make/guest?link",
		url.Values{"allowed_addresses": path[1:], "expires": {"24h"}})
	created.find(t, `id="made-link"><span class="copy"><code>([^<]+)<`)
}

// TestGuestLink shows that a link for guests can be revoked on the page that shows it, and later by
// pasting the link.
func TestGuestLink(t *testing.T) {
	p := newTokenPages(t)
	for _, pasted := range []bool{false, true} {
		created := p.mint("guest", url.Values{"allowed_addresses": {p.address}})
		token := created.find(t, shownToken)
		link := created.find(t, `id="made-link"><span class="copy"><code>([^<]+)<`)
		form := created.find(t, `(?s)action="`+p.base+`/revoke">(.*?id="link-revoke")`)
		if !strings.Contains(form, `value="`+token+`"`) {
			t.Errorf("the button revokes %s, want the token of the link", form)
		}

		revoked := url.Values{"token": {token}}
		if pasted {
			revoked.Set("token", link)
		}
		p.post(p.base, p.base+"/revoke", revoked).leadsTo(t, p.base+"?done=tokenrevoked")
		p.inspect(link).wantText(t, `status bad">Revoked`)
	}
}
