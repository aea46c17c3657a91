package clients

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// A visitor is the subscriber whose token an SDK uses.
type visitor struct {
	*harness.Project
	sub harness.Subscriber
}

// token requests a token for the visitor.
func (v visitor) token(t *testing.T) string {
	t.Helper()
	var sat harness.SAT
	v.Post(t, "/api/fabric/subscribers/tokens", v.Basic(),
		harness.JSON(map[string]any{"reference": v.sub.Email})).Want(t, 200).Read(t, &sat)
	return sat.Token
}

// briefToken requests a token that expires in two seconds, or later on a slow machine, because the
// server does not issue a token that would already have expired.
func (v visitor) briefToken(t *testing.T) string {
	t.Helper()
	for life := 2 * time.Second; ; life *= 2 {
		a := v.Post(t, "/api/fabric/subscribers/tokens", v.Basic(),
			harness.JSON(map[string]any{"reference": v.sub.Email, "expire_at": time.Now().Add(life).Unix()}))
		if a.Status == 422 && life < patience {
			continue
		}
		var sat harness.SAT
		a.Want(t, 200).Read(t, &sat)
		return sat.Token
	}
}

// online reports whether the visitor is online, according to the command line.
func (v visitor) online(t *testing.T) bool {
	t.Helper()
	online, _ := v.CLI(t, "", "subscriber", "show", "--project", v.ID, v.sub.ID)["online"].(bool)
	return online
}

// wantOnline waits until the visitor is online or, if want is false, offline.
func (v visitor) wantOnline(t *testing.T, want bool) {
	t.Helper()
	harness.Eventually(t, patience, fmt.Sprintf("the subscriber to be online: %v", want), func() error {
		if got := v.online(t); got != want {
			return fmt.Errorf("online is %v", got)
		}
		return nil
	})
}

// TestSignalWireJS shows that each version of the stock browser SDK can do the usual tasks of an
// app.
func TestSignalWireJS(t *testing.T) {
	harness.NotStorage(t)
	s := harness.Shared(t)
	journeys := []struct {
		name string
		walk func(s sdk, v visitor)
	}{
		{"kinds", walkKinds}, {"info", walkInfo}, {"addresses", walkAddresses}, {"online", walkOnline},
		{"refused", walkRefused},
		{"revoked", walkRevoked}, {"updateToken", walkUpdateToken}, {"dial", walkDial},
	}

	load := map[string]func(*testing.T, *harness.Server, string) sdk{"Chromium": inChromium, "Node": inNode}

	for _, tt := range []struct{ where, version string }{
		{"Chromium", "3.27.0"}, {"Chromium", "3.28.0"}, {"Chromium", "3.29.2"}, {"Chromium", "3.30.0"},
		{"Node", "3.30.0"},
	} {
		t.Run(tt.version+" in "+tt.where, func(t *testing.T) {
			t.Parallel()
			app := load[tt.where](t, s, tt.version)
			for _, j := range journeys {
				if tt.where == "Node" && j.name == "dial" {
					continue // Node has no media
				}
				t.Run(j.name, func(t *testing.T) {
					p := s.NewProject(t)
					app.T = t
					app.reload(t)
					j.walk(app, visitor{p, p.NewSubscriber(t)})
				})
			}
		})
	}
}

// walkKinds connects with each kind of token.
func walkKinds(s sdk, v visitor) {
	sat := v.token(s.T)
	address := v.Address(s, v.sub.ID)
	embed, _ := v.CLI(s, "", "token", "embed", "--project", v.ID, "--address", address)["token"].(string)
	var exchanged struct{ Token string }
	v.Post(s, "/api/fabric/embeds/tokens", harness.JSON(map[string]string{"token": embed})).Want(s,
		201).Read(s, &exchanged)

	for kind, token := range map[string]string{
		"SAT":    sat,
		"guest":  v.NewGuest(s, address).Token,
		"invite": v.NewInvite(s, sat, address),
		"embed":  exchanged.Token,
	} {
		s.open(token)
		var pages [][]string
		if s.do("names({})", &pages); len(pages) != 1 || len(pages[0]) != 1 {
			s.Errorf("with the %s token, the SDK sees the addresses %v, want one", kind, pages)
		}

		if kind == "guest" { // the SDK tries ten times
			if o := s.try("online()"); o.Error == nil || o.Error.Code != harness.CodeRefused {
				s.Errorf("going online as a guest returned %s, want the error %d", o, harness.CodeRefused)
			}
		}
		s.do("client.disconnect()", nil)
	}
}

// walkInfo reads the subscriber's info and registers a device.
func walkInfo(s sdk, v visitor) {
	s.open(v.token(s.T))
	var info struct {
		ID, Email       string
		FabricAddresses []struct{ ID string } `json:"fabric_addresses"`
	}
	s.do("client.getSubscriberInfo()", &info)
	if info.ID != v.sub.ID || info.Email != v.sub.Email || len(info.FabricAddresses) != 1 {
		s.Errorf("getSubscriberInfo returned %+v, want %s, %s", info, v.sub.ID, v.sub.Email)
	}

	var device struct{ ID string }
	s.do("client.registerDevice({ deviceType: 'Desktop', deviceToken: 'abc123' })", &device)
	s.do(fmt.Sprintf("client.unregisterDevice({ id: %q })", device.ID), nil)
	s.do("client.disconnect()", nil)
}

// walkAddresses lists, filters, sorts and pages through addresses.
func walkAddresses(s sdk, v visitor) {
	for _, name := range []string{"Zoe", "Bob", "Bob"} {
		v.Post(s, "/api/fabric/subscribers/tokens", v.Basic(), harness.JSON(map[string]any{
			"reference":    "ref " + name + fmt.Sprint(time.Now().UnixNano()),
			"display_name": name + " & Co",
		})).Want(s, 200)
	}
	s.open(v.token(s.T))

	var pages [][]string
	if s.do("names({ pageSize: 3, sortBy: 'name', sortOrder: 'asc' })", &pages); len(pages) != 2 ||
		len(pages[0]) != 3 || len(pages[1]) != 1 {
		s.Fatalf("the pages of addresses are %v, want a page of three addresses and a page of one", pages)
	}
	if s.version != "3.27.0" { // version 3.27.0 cannot sort or find by name
		s.wantSorted(slices.Concat(pages...))
	}

	for params, want := range map[string]int{
		"{ displayName: 'Bob & Co' }": 2,
		"{ type: 'subscriber' }":      4,
		"{ type: 'room' }":            0,
	} {
		var found [][]string
		if s.do("names("+params+")", &found); len(found) != 1 || len(found[0]) != want {
			s.Errorf("the addresses of %s are %v, want %d", params, found, want)
		}
	}
	s.wantError("client.address.getAddress({ id: 'b7a5c2a0-0000-4000-8000-000000000000' })", "HttpError", 404)
	s.do("client.disconnect()", nil)
}

// wantSorted requests the same addresses in reverse order. It also requests one of them by its ID
// and by its name.
func (s sdk) wantSorted(ordered []string) {
	s.Helper()
	var reversed [][]string
	s.do("names({ pageSize: 50, sortBy: 'name', sortOrder: 'desc' })", &reversed)
	if slices.Reverse(reversed[0]); !slices.IsSorted(ordered) || !slices.Equal(ordered, reversed[0]) {
		s.Errorf("the addresses sorted by name are %v, and in reverse %v, want opposite orders", ordered, reversed[0])
	}

	type address struct{ ID, Name string }
	var first []address
	var byID, byName address
	s.do("client.address.getAddresses({ sortBy: 'name', sortOrder: 'asc' }).then(page => page.data)", &first)
	s.do(fmt.Sprintf("client.address.getAddress({ id: %q })", first[2].ID), &byID)
	s.do(fmt.Sprintf("client.address.getAddress({ name: %q })", first[2].Name), &byName)
	if byID != first[2] || byName != first[2] {
		s.Errorf("by its id, the address is %+v, and by its name %+v, want %+v", byID, byName, first[2])
	}
	s.wantError("client.address.getAddress({ name: 'nobody' })", "HttpError", 404)
}

// walkOnline goes online and offline.
func walkOnline(s sdk, v visitor) {
	s.open(v.token(s.T))
	v.wantOnline(s.T, false)
	s.do("online()", nil)
	v.wantOnline(s.T, true)
	s.do("client.offline()", nil)
	v.wantOnline(s.T, false)
	s.do("online()", nil)
	v.wantOnline(s.T, true)
	s.do("client.disconnect()", nil)
	v.wantOnline(s.T, false)
}

// walkRefused tries to connect with invalid tokens.
func walkRefused(s sdk, v visitor) {
	expired, revoked := v.briefToken(s.T), v.token(s.T)
	v.Command(s, revoked, "token", "revoke")
	harness.Eventually(s, patience, "the token to expire", func() error {
		return v.Get(s, "/subscriber/info", harness.Bearer(expired)).StatusIs(401)
	})
	harness.Eventually(s, patience, "the token to be revoked", func() error {
		return v.Get(s, "/subscriber/info", harness.Bearer(revoked)).StatusIs(401)
	})

	host := strings.Replace(strings.TrimPrefix(v.HTTPS, "https://"), "127.0.0.1", "puc.localhost", 1)

	for name, promise := range map[string]string{
		"expired": fmt.Sprintf("open(%q)", expired),
		"revoked": fmt.Sprintf("open(%q)", revoked),
		"garbage": fmt.Sprintf("open('garbage', { host: %q })", host),
		"refresh": fmt.Sprintf("open(%q)", v.NewSAT(s, v.sub.Email).RefreshToken),
	} {
		s.Run(name, func(t *testing.T) {
			s := s
			s.T = t
			s.reload(t)
			s.wantError(promise, "AuthError", harness.CodeAuthenticationFailed)
		})
	}
}

// walkRevoked revokes the token of an SDK that is online.
func walkRevoked(s sdk, v visitor) {
	token := v.token(s.T)
	s.open(token)
	s.do("online()", nil)
	v.wantOnline(s.T, true)
	v.Command(s, token, "token", "revoke")
	v.wantOnline(s.T, false)
	s.wantEvent("session.reconnecting")
	s.wantEvent(fmt.Sprint("session.auth_error ", harness.CodeAuthenticationFailed))
	if s.version != "3.27.0" { // version 3.27.0 has no such error
		s.wantError("client.getSubscriberInfo()", "AuthError", 401)
	}
}

// walkUpdateToken replaces the token of a connected client and revokes the old one.
func walkUpdateToken(s sdk, v visitor) {
	first, second := v.token(s.T), v.token(s.T)
	s.open(first)
	s.do("online()", nil)
	if s.version == "3.27.0" || s.version == "3.28.0" {
		// These versions wait for the event on the client, although the session emits it.
		s.eval(s.T, fmt.Sprintf("void client.updateToken(%q), 0", second), new(int))
	} else {
		s.do(fmt.Sprintf("client.updateToken(%q)", second), nil)
	}
	s.wantEvent("session.connected")

	v.Command(s, first, "token", "revoke")
	harness.Eventually(s, patience, "the old token to be revoked", func() error {
		return v.Get(s, "/subscriber/info", harness.Bearer(first)).StatusIs(401)
	})
	s.do("online()", nil)
	v.wantOnline(s.T, true)

	var events []string
	if s.eval(s.T, "events", &events); slices.Contains(events, "session.reconnecting") {
		s.Errorf("the SDK reports %q after the token that it replaced was revoked, want no reconnection",
			events)
	}
	if s.version == "3.30.0" {
		foreign := v.NewSAT(s, "someone else").Token
		s.wantError(fmt.Sprintf("client.updateToken(%q)", foreign), "AuthError", harness.CodeValidationFailed)
	}
}

// walkDial calls an unknown address, and checks the cause with which the call ends.
func walkDial(s sdk, v visitor) {
	s.open(v.token(s.T))
	var cause string
	s.do("causeOf('/private/nobody')", &cause)
	if cause != "UNALLOCATED_NUMBER" {
		s.Errorf("a call to an unknown address ended with %q, want UNALLOCATED_NUMBER", cause)
	}
	s.do("client.disconnect()", nil)
}
