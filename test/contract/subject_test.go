package contract

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
	"github.com/selvage/selvage/test/phone"
)

// subject creates the object that an operation needs and returns the path to it.
func (w *world) subject(t *testing.T, op operation) string {
	t.Helper()
	if !strings.Contains(op.path, "{") {
		return op.path
	}

	fill := func(pairs ...string) string {
		path := strings.NewReplacer(pairs...).Replace(op.path)
		if strings.Contains(path, "{") {
			t.Fatalf("no object is known for the parameters of %s", path)
		}
		return path
	}

	switch op.Tags[0] {
	case "SIP credentials":
		return w.createCredentials(t, op)
	case "Subscriber access":
		return w.createOwned(t, op)
	case "Logouts":
		c := w.NewClient(t, "web", "--first-party", "--backchannel-logout-uri", "https://hooks.invalid/logout")
		sub := w.NewSubscriber(t)
		tokens, _ := c.SignIn(t, sub, "openid")
		sid := tokens.SessionOf(t)
		w.Do(t, "DELETE", "/api/fabric/resources/subscribers/"+sub.ID+"/sessions/"+sid, w.who["basic"]).Want(t, 204)
		return fill("{id}", c.ID, "{session}", sid)
	case "OAuth clients":
		c := w.NewClient(t, "web", "--first-party")
		if strings.HasSuffix(op.path, "/previous") {
			w.CLI(t, "", "client", "rotate-secret", c.ID)
		}
		return fill("{id}", c.ID)
	case "Addresses", "Messages":
		return fill("{id}", w.Address(t, w.NewSAT(t, "ada").SubscriberID))
	case "Current subscriber":
		a := w.Post(t, "/subscriber/devices", w.who["sat"],
			harness.JSON(map[string]string{"device_type": "iOS", "device_token": unique("token")}))
		return fill("{id}", id(t, a.Want(t, 201)))
	case "Room sessions":
		if strings.HasPrefix(op.path, "/api/fabric/calls/") {
			return fill("{id}", w.startMovableCall(t, op))
		}
		return fill("{id}", w.createRoomSession(t))
	case "Resources":
		return fill("{id}", w.create(t, "SWML scripts"))
	}

	made := w.create(t, op.Tags[0])
	if op.OperationID == "endOldKeySecret" {
		w.CLI(t, "", "key", "rotate", "--project", w.ID, made)
	}
	if strings.Contains(op.path, "{delivery}") {
		return fill("{id}", made, "{delivery}", w.causeDelivery(t, made))
	}
	return fill("{id}", made)
}

// createRoomSession creates a room with a member and returns the id of its session.
func (w *world) createRoomSession(t *testing.T) string {
	t.Helper()
	name := unique("room")
	w.Post(t, "/api/fabric/resources/conference_rooms", w.who["basic"],
		harness.JSON(map[string]string{"name": name})).Want(t, 201)
	phone.Connect(t, w.Server, w.NewSAT(t, unique("member")).Token, "").G711().Dial("/public/" + name).WaitAnswered()

	var page struct{ Data []struct{ ID string } }
	w.Get(t, "/api/fabric/room_sessions?state=in-progress", w.who["basic"]).Want(t, 200).Read(t, &page)
	return page.Data[0].ID
}

// startMovableCall begins a call and returns its ID. For an operation that moves a call into a
// room, it creates the room named in the operation's example. For one that moves a call out of a
// room (DELETE), the call is already in that room.
func (w *world) startMovableCall(t *testing.T, op operation) string {
	t.Helper()
	w.Post(t, "/api/fabric/resources/conference_rooms", w.who["basic"],
		harness.JSON(map[string]string{"name": "lobby"})).Want(t, 201, 422) // 422 if the room exists
	from, to := unique("caller"), unique("callee")
	at := phone.Connect(t, w.Server, w.NewSAT(t, to).Token, "").G711().Online()
	caller, _ := phone.Talk(phone.Connect(t, w.Server, w.NewSAT(t, from).Token, "").G711(), at, "/private/"+to)
	if op.method == "DELETE" {
		w.Do(t, "PUT", strings.Replace(op.path, "{id}", caller.ID, 1), w.who["basic"],
			harness.JSON(map[string]string{"address": "/public/lobby"})).Want(t, 204)
	}
	return caller.ID
}

// causeDelivery causes an event that the webhook receives, and returns the id of the delivery.
func (w *world) causeDelivery(t *testing.T, webhook string) string {
	t.Helper()
	w.NewSubscriber(t)
	var page struct{ Data []struct{ ID string } }
	harness.Eventually(t, time.Minute, "a delivery", func() error {
		w.Get(t, "/api/fabric/webhooks/"+webhook+"/deliveries", w.who["basic"]).Want(t, 200).Read(t, &page)
		if len(page.Data) == 0 {
			return errors.New("there is no delivery")
		}
		return nil
	})
	return page.Data[0].ID
}

// createCredentials creates a subscriber with SIP credentials and returns the path to them.
func (w *world) createCredentials(t *testing.T, op operation) string {
	t.Helper()
	of := "/api/fabric/resources/subscribers/" + w.NewSubscriber(t).ID + "/sip_endpoints"
	if !strings.HasSuffix(op.path, "{id}") {
		return of
	}
	a := w.Post(t, of, w.who["basic"], harness.JSON(
		map[string]string{"username": unique("phone"), "password": "not to be guessed"}))
	return of + "/" + id(t, a.Want(t, 201))
}

// createOwned creates a subscriber who has an object of the kind that the path names, and returns
// the path to this object.
func (w *world) createOwned(t *testing.T, op operation) string {
	t.Helper()
	sub := w.NewSubscriber(t)
	of := "/api/fabric/resources/subscribers/" + sub.ID

	rest := op.path[strings.Index(op.path, "}")+1:]
	if rest == "/invitation" { // a subscriber with a password cannot be invited
		a := w.Post(t, "/api/fabric/resources/subscribers", w.who["basic"],
			harness.JSON(map[string]string{"email": unique("invited") + "@example.com"}))
		path := "/api/fabric/resources/subscribers/" + id(t, a.Want(t, 201)) + rest
		if op.method == "DELETE" {
			w.Post(t, path, w.who["basic"]).Want(t, 202)
		}
		return path
	}
	if !strings.HasSuffix(rest, "{id}") {
		return of + rest
	}

	list := of + strings.TrimSuffix(rest, "/{id}")
	sat := w.NewSAT(t, sub.Email)
	switch rest {
	case "/consents/{id}":
		c := w.NewClient(t, "spa")
		c.SignIn(t, sub, "openid")
		return list + "/" + c.ID
	case "/factors/{id}":
		return list + "/recovery_codes" // the codes can always be removed
	case "/sessions/{id}":
		w.NewClient(t, "spa", "--first-party").SignIn(t, sub, "openid")
	case "/tokens/{id}":
		w.Post(t, "/api/fabric/subscribers/tokens/refresh", w.who["basic"],
			harness.JSON(map[string]string{"refresh_token": sat.RefreshToken})).Want(t, 201)
	case "/devices/{id}":
		w.Post(t, "/subscriber/devices", harness.Bearer(sat.Token),
			harness.JSON(map[string]string{"device_type": "iOS", "device_token": unique("token")})).Want(t, 201)
	}

	var page struct{ Data []struct{ ID string } }
	w.Get(t, list, w.who["basic"]).Want(t, 200).Read(t, &page)
	if len(page.Data) != 1 {
		t.Fatalf("%s has %d entries, want 1", list, len(page.Data))
	}
	return list + "/" + url.PathEscape(page.Data[0].ID)
}
