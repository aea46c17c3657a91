package attack

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/internal/factor/factortest"
	"github.com/selvage/selvage/test/harness"
	"github.com/selvage/selvage/test/phone"
)

// TestK10ForeignIDs calls every operation whose path contains an ID, with the IDs of another
// project's objects. The key and the token that it uses have all rights in their own project. No
// response shows an object of the other project, and no object changes. If a path contains several
// IDs, the test also tries it with the first ID replaced by one of the attacker's own.
func TestK10ForeignIDs(t *testing.T) {
	victim := limited(t, "API_REQUESTS=0", "API_WRITES=0", "MEDIA_MISSES_PER_NETWORK=0", harness.AllowLocal)
	theirs, own := newThings(t, victim), newThings(t, victim.Server.NewProject(t))
	before := theirs.settled(t)

	n := 0
	for _, o := range operations(t) {
		parameters := strings.Count(o.path, "{")
		if parameters == 0 || slices.Contains(o.accepts, "none") {
			continue // anyone who knows the ID may fetch this, such as public media
		}

		paths := []string{theirs.fill(o.path)}
		if parameters > 1 {
			first := strings.Index(o.path, "}") + 1
			paths = append(paths, own.fill(o.path[:first])+theirs.fillFrom(o.path, first))
		}

		for _, path := range paths {
			for _, by := range []harness.Option{own.key, harness.Bearer(own.sat.Token)} {
				n++
				a := victim.Do(t, o.method, path, by, example(o))
				isEmpty := a.Status == 200 && o.method == "GET" // such as a list of the attacker's objects
				if (a.Status < 400 && !isEmpty) || a.Status >= 500 || theirs.isShown(a.Body, path) {
					t.Errorf("%s %s of another project = %d %.300s", o.method, path, a.Status, a.Body)
				}
			}
		}
	}

	if after := theirs.show(t); !maps.Equal(after, before) {
		for path := range before {
			if after[path] != before[path] {
				t.Errorf("requests of another project changed %s\n%s\nto\n%s", path, before[path], after[path])
			}
		}
	}
	for path := range theirs.unknown {
		if !unmade.MatchString(path) {
			t.Errorf("%s was tried only with an unknown ID, want newThings to create such an object", path)
		}
	}
	t.Logf("%d things, %d requests", len(theirs.ids), n)
}

// example returns the example body of the document, which would change something if the request
// were permitted. If there is none, it returns [body].
func example(o operation) harness.Option {
	if o.example == nil {
		return body(o)
	}
	return harness.JSON(o.example)
}

// canary is the name of all objects of the attacked project. A response that contains it reveals
// one of these objects.
const canary = "canary-of-the-victim"

// things holds one object of each kind that operations name, all in one project.
type things struct {
	*harness.Project
	key     harness.Option // key with all scopes
	sat     harness.SAT
	account harness.Subscriber

	// ids holds the IDs of the objects. The key is the path up to the ID, with {} for each
	// parameter.
	ids     map[string]string
	unknown map[string]bool // paths that were filled with an unknown ID
}

// newThings creates the objects in a project.
func newThings(t *testing.T, p *harness.Project) *things {
	t.Helper()
	th := &things{Project: p, key: harness.Basic(p.ID, p.NewKey(t, allScopes...)), account: p.NewSubscriber(t),
		ids: make(map[string]string), unknown: make(map[string]bool)}
	th.addAccount(t)
	th.addDevice(t)
	th.addResources(t)
	th.addDeliveries(t)
	th.addRoom(t)
	th.addRecordings(t)
	th.ids["/api/project/tokens/"] = th.create(t, "/api/project/tokens",
		map[string]any{"name": canary, "permissions": []string{"calling"}})
	for _, list := range []string{"/api/project/ingest_keys", "/api/project/registration_tokens"} {
		th.ids[list+"/"] = th.create(t, list, map[string]any{"name": canary})
	}

	th.ids["/api/project/upstreams/"] = th.create(t, "/api/project/upstreams",
		map[string]any{"name": canary, "issuer": "https://id.example.com", "client_id": canary})
	return th
}

// addAccount adds a subscriber with a second factor, a consent and two logins. It ends one of the
// logins, so that the app is notified.
func (th *things) addAccount(t *testing.T) {
	t.Helper()
	const subscribers = "/api/fabric/resources/subscribers/"
	th.ids[subscribers] = th.account.ID
	c := th.NewClient(t, "web", "--name", canary, "--backchannel-logout-uri", harness.NewReceiver(t).URL)
	th.ids["/api/fabric/clients/"], th.ids[subscribers+"{}/consents/"] = c.ID, c.ID

	c.SignIn(t, th.account, "openid") // before the subscriber has a second factor
	b := th.Browser()
	page := b.Submit(t, b.Open(t, "/account?project="+th.ID), "login-submit",
		map[string]string{"username": th.account.Email, "password": th.account.Password})
	device := &factortest.Authenticator{Origin: th.AuthURL}
	passkey := string(device.Create([]byte(page.Attribute(t, "passkey-form", "data-options"))))
	b.Submit(t, page, "passkey-submit", map[string]string{"credential": passkey, "name": canary}).Want(t, 200)

	c.SignInWith(t, b, th.account, "openid")
	th.ids[subscribers+"{}/factors/"] = th.first(t, subscribers+th.account.ID+"/factors", "id")
	sessions := subscribers + th.account.ID + "/sessions"
	th.Do(t, "DELETE", sessions+"/"+th.first(t, sessions, "id"), th.key).Want(t, 204)
	th.ids["/api/fabric/clients/{}/logouts/"] = th.first(t, "/api/fabric/clients/"+c.ID+"/logouts", "session_id")
	th.ids[subscribers+"{}/sessions/"] = th.first(t, sessions, "id")
}

// addDevice adds a device, a used refresh token, an address and a conversation.
func (th *things) addDevice(t *testing.T) {
	t.Helper()
	const subscribers = "/api/fabric/resources/subscribers/"
	th.sat = th.NewSAT(t, th.account.Email)
	th.Post(t, "/api/fabric/subscribers/tokens/refresh", th.key,
		harness.JSON(map[string]any{"refresh_token": th.sat.RefreshToken})).Want(t, 200, 201)
	th.Post(t, "/subscriber/devices", harness.Bearer(th.sat.Token), harness.JSON(map[string]string{
		"device_type": "iOS", "device_token": canary, "device_name": canary})).Want(t, 201)

	of := subscribers + th.account.ID
	th.ids[subscribers+"{}/tokens/"] = th.first(t, of+"/tokens", "id")
	th.ids[subscribers+"{}/devices/"] = th.first(t, of+"/devices", "id")
	th.ids["/subscriber/devices/"] = th.ids[subscribers+"{}/devices/"]
	th.ids["/api/fabric/addresses/"] = th.Address(t, th.account.ID)
	th.addConversation(t)
}

// addConversation adds a conversation with another subscriber.
func (th *things) addConversation(t *testing.T) {
	t.Helper()
	peer := th.Address(t, th.NewSubscriber(t).ID)
	th.Post(t, "/api/fabric/messages", harness.Bearer(th.sat.Token),
		harness.JSON(map[string]string{"conversation_id": peer, "text": canary})).Want(t, 201)
	th.ids["/api/fabric/conversations/"] = peer
}

// digitsOf returns ten digits that depend on an ID, so that they differ between projects.
func digitsOf(id string) string {
	sum := sha256.Sum256([]byte(id))
	return strconv.FormatUint(1e9+binary.BigEndian.Uint64(sum[:])%9e9, 10)
}

// addResources adds a resource of each kind that has an example in the document.
func (th *things) addResources(t *testing.T) {
	t.Helper()
	var of string
	for _, o := range operations(t) {
		kind, ok := strings.CutPrefix(o.path, "/api/fabric/resources/")
		if ok && o.method == "POST" && o.example != nil && kind != "subscribers" && !strings.Contains(kind, "/") {
			of = th.create(t, o.path, o.example)
			th.ids[o.path+"/"], th.ids[strings.TrimSuffix(o.path, "s")+"/"] = of, of
		}
	}
	th.ids["/api/fabric/resources/"] = of

	th.ids["/api/fabric/phone_numbers/"] = th.create(t, "/api/fabric/phone_numbers",
		map[string]any{"number": "+49" + digitsOf(th.ID)})
	th.ids["/api/fabric/sip_addresses/"] = th.create(t, "/api/fabric/sip_addresses",
		map[string]any{"name": "canary-" + th.ID, "calling_handler_resource_id": of})
	th.ids["/api/fabric/resources/subscribers/{}/sip_endpoints/"] = th.create(t,
		"/api/fabric/resources/subscribers/"+th.account.ID+"/sip_endpoints",
		map[string]any{"username": "canary", "password": "granite-otter-nine"})
}

// addDeliveries adds a webhook and a delivery.
func (th *things) addDeliveries(t *testing.T) {
	t.Helper()
	hook := th.create(t, "/api/fabric/webhooks",
		map[string]any{"name": canary, "url": harness.NewReceiver(t).URL})
	th.ids["/api/fabric/webhooks/"] = hook
	th.Post(t, "/api/fabric/webhooks/"+hook+"/test", th.key).Want(t, 200, 201, 202)
	th.ids["/api/fabric/webhooks/{}/deliveries/"] = th.first(t, "/api/fabric/webhooks/"+hook+"/deliveries", "id")
}

// addRoom adds a conference room with a member whose call has not ended.
func (th *things) addRoom(t *testing.T) {
	t.Helper()
	const room = "canary-room"
	th.create(t, "/api/fabric/resources/conference_rooms", map[string]any{"name": room})
	caller := phone.Connect(t, th.Server, th.NewSAT(t, "caller").Token, "").G711().Dial("/public/" + room)
	caller.WaitAnswered()
	th.ids["/api/fabric/room_sessions/"] = th.first(t, "/api/fabric/room_sessions?state=in-progress", "id")
	th.ids["/api/fabric/calls/"] = caller.ID
	for _, accounts := range lamlAccounts {
		th.ids[accounts+"{}/Calls/"] = caller.ID
	}
}

// lamlAccounts lists the two prefixes of paths in the LaML API.
var lamlAccounts = []string{"/api/laml/2010-04-01/Accounts/", "/2010-04-01/Accounts/"}

// addRecordings adds a recording of a conference and a recording of a call. It also adds a
// retention rule, and finds the ID of a status callback.
func (th *things) addRecordings(t *testing.T) {
	t.Helper()
	app := harness.NewReceiver(t)
	for _, of := range []string{"Call", "Conference"} {
		parent := uuid.NewString()
		if of == "Call" {
			parent = th.ids[lamlAccounts[0]+"{}/Calls/"]
		}
		query := url.Values{of + "Sid": {parent}, "SubscriberId": {th.account.ID}, "RecordingStatusCallback": {app.URL}}
		sid := fmt.Sprint(th.Post(t, th.LaML("/Recordings?"+query.Encode()), th.key,
			harness.Body("audio/wav", harness.Tone(8000, 8))).Want(t, 201).Object(t)["sid"])

		th.ids["/api/relay/rest/recordings/"] = sid
		for _, accounts := range lamlAccounts {
			th.ids[accounts], th.ids[accounts+"{}/"+of+"s/"] = th.ID, parent
			th.ids[accounts+"{}/Recordings/"], th.ids[accounts+"{}/"+of+"s/{}/Recordings/"] = sid, sid
		}
	}

	th.ids["/api/relay/rest/recordings/retention/"] = th.create(t, "/api/relay/rest/recordings/retention",
		map[string]any{"days": 36525, "tag": "canary"})
	th.ids["/api/relay/rest/recordings/callbacks/"] = th.first(t, "/api/relay/rest/recordings/callbacks", "id")
}

// create creates an object and returns its ID.
func (th *things) create(t *testing.T, path string, in any) string {
	t.Helper()
	return fmt.Sprint(th.Post(t, path, th.key, harness.JSON(in)).Want(t, 200, 201).Object(t)["id"])
}

// first gets a list and returns a member of its first object.
func (th *things) first(t *testing.T, path, member string) string {
	t.Helper()
	var list struct{ Data []map[string]any }
	th.Get(t, path, th.key).Want(t, 200).Read(t, &list)
	if len(list.Data) == 0 {
		t.Fatalf("%s is empty", path)
	}
	return fmt.Sprint(list.Data[0][member])
}

// fill replaces the parameters of a path with the IDs in th, or with unknown IDs.
func (th *things) fill(path string) string { return th.fillFrom(path, 0) }

// fillFrom returns the part of a path that begins at from, with its parameters replaced.
func (th *things) fillFrom(path string, from int) string {
	var filled strings.Builder
	at := from
	for _, m := range inPath.FindAllStringIndex(path, -1) {
		if m[0] < from {
			continue
		}
		id, ok := th.ids[inPath.ReplaceAllString(path[:m[0]], "{}")]
		if !ok {
			th.unknown[path] = true
			id = uuid.NewString()
		}
		filled.WriteString(path[at:m[0]] + id)
		at = m[1]
	}
	return filled.String() + path[at:]
}

// isShown reports whether a response reveals data of the project. The project's ID counts only if
// the request did not contain it.
func (th *things) isShown(answer []byte, path string) bool {
	text := string(answer)
	return strings.Contains(text, canary) || strings.Contains(text, th.account.Email) ||
		!strings.Contains(path, th.ID) && strings.Contains(text, th.ID)
}

// unmade matches the paths of kinds of resources that cannot be created through the API.
var unmade = regexp.MustCompile(`/(cxml_applications|dialogflow_agents)/`)

// moments matches values that change each time an object is shown, such as the duration of a live
// call.
var moments = regexp.MustCompile(`"(exported_at|last_used_at|last_seen_at)":"[^"]*"|` +
	`"(end_time|ended_at|left_at)":null,"duration":[0-9]+|` +
	// The number of times that media was fetched.
	`"requests":[0-9]+,"bytes":[0-9]+,"first_at":"[^"]*","last_at":"[^"]*"`)

// show calls each GET operation whose path contains an ID, and wants 200. It returns the responses
// by path.
func (th *things) show(t *testing.T) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for _, o := range operations(t) {
		if o.method != "GET" || !strings.Contains(o.path, "{") || unmade.MatchString(o.path) {
			continue
		}
		by := th.key
		if !slices.Contains(o.accepts, "basic") {
			by = harness.Bearer(th.sat.Token)
		}
		a := th.Get(t, th.fill(o.path), by)
		if a.Status != 200 {
			t.Errorf("GET %s with the project's own credentials = %d %.200s, want 200",
				th.fill(o.path), a.Status, a.Body)
		}
		all[o.path] = moments.ReplaceAllString(string(a.Body), "")
	}
	return all
}

// pending matches the state of a delivery that is still tried.
var pending = regexp.MustCompile(`"state": ?"pending"`)

// settled calls show repeatedly until no delivery is pending and no response changes any longer. It
// returns the last responses.
func (th *things) settled(t *testing.T) (all map[string]string) {
	t.Helper()
	all = th.show(t)
	harness.Eventually(t, time.Minute, "the objects to stop changing", func() error {
		before := all
		if all = th.show(t); !maps.Equal(all, before) {
			return fmt.Errorf("the responses still change")
		}
		for path, text := range all {
			if pending.MatchString(text) {
				return fmt.Errorf("a delivery at %s is pending", path)
			}
		}
		return nil
	})
	return all
}
