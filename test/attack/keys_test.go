package attack

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/selvage/selvage/test/harness"
)

const keysPath = "/api/project/tokens"

// A keptKey is an API key as the API returns it.
type keptKey struct {
	ID          string
	Name        string
	Permissions []string
	Token       string
	ExpiresAt   *string `json:"expires_at"`
	RevokedAt   *string `json:"revoked_at"`
}

// keysOf returns the keys of a project, listed by a caller with Management.
func keysOf(t *testing.T, p *harness.Project, by harness.Option) map[string]keptKey {
	t.Helper()
	var list struct{ Data []keptKey }
	p.Get(t, keysPath, by).Want(t, 200).Read(t, &list)
	all := map[string]keptKey{}
	for _, k := range list.Data {
		all[k.ID] = k
	}
	return all
}

func sameKeys(a, b map[string]keptKey) bool {
	return maps.EqualFunc(a, b, func(x, y keptKey) bool {
		return x.Name == y.Name && slices.Equal(x.Permissions, y.Permissions) &&
			(x.RevokedAt == nil) == (y.RevokedAt == nil)
	})
}

// TestK05KeysWithoutManagement shows that credentials without Management for the project cannot
// list, create, change, rotate or delete API keys, not even their own.
func TestK05KeysWithoutManagement(t *testing.T) {
	p := project(t)
	boss := harness.Basic(p.ID, p.NewKey(t, "Management"))
	service := p.NewClient(t, "service", "--scope", "Voice,Messaging")
	var given struct {
		Token string `json:"access_token"`
	}
	service.Token(t, map[string][]string{"grant_type": {"client_credentials"},
		"scope": {"Voice Messaging"}}).Want(t, 200).Read(t, &given)

	before := keysOf(t, p, boss)
	for who, by := range map[string]harness.Option{
		"a key":                    p.Basic(),
		"a service":                harness.Bearer(given.Token),
		"a subscriber":             harness.Bearer(p.NewSAT(t, "ada").Token),
		"a key of another project": harness.Basic(p.ID, project(t).NewKey(t, "Management")),
	} {
		t.Run(who, func(t *testing.T) {
			all := harness.JSON(map[string]any{
				"name":        "mine",
				"permissions": []string{"management", "calling"},
				"overlap":     0,
			})
			p.Get(t, keysPath, by).WantUnauthorized(t)
			p.Post(t, keysPath, by, all).WantUnauthorized(t)
			for id := range before {
				p.Get(t, keysPath+"/"+id, by).WantUnauthorized(t)
				p.Do(t, "PATCH", keysPath+"/"+id, by, all).WantUnauthorized(t)
				p.Do(t, "PUT", keysPath+"/"+id, by, all).WantUnauthorized(t)
				p.Do(t, "DELETE", keysPath+"/"+id, by).WantUnauthorized(t)
				p.Post(t, keysPath+"/"+id+"/rotate", by, all).WantUnauthorized(t)
			}
		})
	}

	if after := keysOf(t, p, boss); !sameKeys(before, after) {
		t.Errorf("refused requests changed the keys from %v to %v", before, after)
	}
}

// TestK05Escalation shows that a key that has only Management cannot gain other permissions by
// creating, changing or rotating a key.
func TestK05Escalation(t *testing.T) {
	p := project(t)
	boss := harness.Basic(p.ID, p.NewKey(t, "Management"))
	before := keysOf(t, p, boss)
	faults(t, p.Post(t, keysPath, boss, harness.JSON(
		map[string]any{"name": "more", "permissions": []string{"calling"}})))
	for id, k := range before {
		if slices.Contains(k.Permissions, "management") {
			faults(t, p.Do(t, "PATCH", keysPath+"/"+id, boss,
				harness.JSON(map[string]any{"permissions": []string{"management", "video"}})))
			continue
		}
		p.Post(t, keysPath+"/"+id+"/rotate", boss, harness.JSON(map[string]any{"overlap": 0})).WantError(t,
			403, "Forbidden")
	}

	if after := keysOf(t, p, boss); !sameKeys(before, after) {
		t.Errorf("refused requests changed the keys from %v to %v", before, after)
	}
	p.Get(t, "/api/fabric/resources/subscribers", p.Basic()).Want(t, 200)
	p.Get(t, p.LaML("/Recordings"), boss).Want(t, 401)
}

// TestK08KeyTiming shows that refusing a key takes the same time whether its first byte or its last
// byte is wrong.
func TestK08KeyTiming(t *testing.T) {
	p := project(t)
	first, last := "XX"+p.Key[2:], p.Key[:len(p.Key)-1]+"x"
	wantAlike(t, "a wrong first byte", "a wrong last byte", func() (a, b time.Duration) {
		const tries = 101
		var took [2][]time.Duration
		for i := range 2 * tries {
			key := []string{first, last}[i%2]
			began := time.Now()
			p.Get(t, "/api/fabric/resources/subscribers", harness.Basic(p.ID, key)).Want(t, 401)
			took[i%2] = append(took[i%2], time.Since(began))
		}
		return slices.Min(took[0]), slices.Min(took[1]) // other work can only prolong a request
	})
}

// TestF04MassAssignment shows that request bodies cannot set members that belong to the server.
func TestF04MassAssignment(t *testing.T) {
	p, stranger := project(t), project(t)
	eve := stranger.NewSubscriber(t)
	boss := harness.Basic(p.ID, p.NewKey(t, append(harness.APIScopes, "Management")...))
	extra := map[string]any{
		"id": eve.ID, "project_id": stranger.ID, "subscriber_id": eve.ID, "scopes": []string{"Management"},
		"created_at": "1999-01-01T00:00:00Z",
		"updated_at": "1999-01-01T00:00:00Z", "email_verified": true, "disabled": true, "password_hash": "x",
		"type": "admin", "hash": "x", "token": "PTmine",
		"revoked_at": "1999-01-01T00:00:00Z", "last_used_at": "1999-01-01T00:00:00Z", "prefix": "PTmine",
		"kind": "sat", "jti": "x",
	}

	with := func(more map[string]any) harness.Option {
		body := maps.Clone(extra)
		maps.Copy(body, more)
		return harness.JSON(body)
	}

	wantOwn := func(what string, o map[string]any) {
		t.Helper()
		for member, bad := range map[string]any{
			"id":            eve.ID,
			"project_id":    stranger.ID,
			"subscriber_id": eve.ID,
			"created_at":    "1999-01-01T00:00:00Z",
			"token":         "PTmine",
			"prefix":        "PTmine",
			"revoked_at":    "1999-01-01T00:00:00Z",
			"last_used_at":  "1999-01-01T00:00:00Z",
			"type":          "admin",
		} {
			if o[member] == bad {
				t.Errorf("%s has the %s from the request body", what, member)
			}
		}
	}

	sub := p.Post(t, "/api/fabric/resources/subscribers", p.Basic(),
		with(map[string]any{"email": "ada@example.com"})).Want(t, 201).Object(t)
	wantOwn("a new subscriber", sub)
	path := "/api/fabric/resources/subscribers/" + sub["id"].(string)
	wantOwn("a changed subscriber", p.Do(
		t, "PATCH", path, p.Basic(), with(map[string]any{"first_name": "Ada"})).Want(t, 200).Object(t))

	room := p.Post(t, "/api/fabric/resources/conference_rooms", p.Basic(),
		with(map[string]any{"name": "room"})).Want(t, 200, 201).Object(t)
	wantOwn("a new resource", room)

	var sat harness.SAT
	p.Post(t, "/api/fabric/subscribers/tokens", p.Basic(),
		with(map[string]any{"reference": "ada@example.com"})).Want(t, 200).Read(t, &sat)
	if sat.SubscriberID != sub["id"] {
		t.Errorf("a token for %v was issued for %v", sub["id"], sat.SubscriberID)
	}
	p.Get(t, "/subscriber/info", harness.Bearer(sat.Token)).Want(t, 200) // the subscriber is not disabled

	key := p.Post(t, keysPath, boss, with(
		map[string]any{"name": "key", "permissions": []string{"fax"}})).Want(t, 200).Object(t)
	wantOwn("a new key", key)
	wantOwn("a changed key", p.Do(t, "PATCH", keysPath+"/"+key["id"].(string), boss,
		with(map[string]any{"name": "other"})).Want(t, 200).Object(t))
	if got := keysOf(t, p, boss)[key["id"].(string)].Permissions; !slices.Equal(got, []string{"fax"}) {
		t.Errorf("a key that was created with the permission fax has %v", got)
	}

	theirs := stranger.Get(t, "/api/fabric/resources/subscribers/"+eve.ID, stranger.Basic()).Want(t, 200).Object(t)
	if theirs["project_id"] != stranger.ID {
		t.Errorf("another project's subscriber is now %v", theirs)
	}
}

// TestF05BodiesEverywhere shows that operations of each API refuse a body that is too large, too
// deeply nested, not UTF-8 or not JSON.
func TestF05BodiesEverywhere(t *testing.T) {
	p := project(t)
	boss := harness.Basic(p.ID, p.NewKey(t, append(harness.APIScopes, "Management")...))
	sat := p.NewSAT(t, "ada")
	me := "/api/fabric/resources/subscribers/" + sat.SubscriberID
	var key keptKey
	p.Post(t, keysPath, boss, harness.JSON(
		map[string]any{"name": "key", "permissions": []string{"fax"}})).Want(t, 200).Read(t, &key)
	huge := []byte(`{"name":"` + strings.Repeat("x", 10<<20) + `"}`)
	deep := []byte(`{"nothing":` + strings.Repeat("[", 100_000))
	closed := []byte(`{"nothing":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`)

	for _, op := range []struct {
		method, path string
		by           harness.Option
	}{
		{"POST", keysPath, boss}, {"PATCH", keysPath + "/" + key.ID, boss},
		{"POST", keysPath + "/" + key.ID + "/rotate", boss},
		{"POST", "/api/fabric/subscribers/tokens", p.Basic()},
		{"POST", "/api/fabric/subscribers/tokens/refresh", p.Basic()},
		{"POST", "/api/fabric/guests/tokens", p.Basic()},
		{"POST", "/api/fabric/subscriber/invites", harness.Bearer(sat.Token)},
		{"POST", "/api/fabric/embeds/tokens", harness.Header("X-Nothing", "")},
		{"POST", "/subscriber/devices", harness.Bearer(sat.Token)},
		{"POST", "/api/fabric/resources/subscribers", p.Basic()}, {"PUT", me, p.Basic()},
		{"POST", me + "/sip_endpoints", p.Basic()},
		{"POST", "/api/fabric/resources/ai_agents", p.Basic()}, {"POST", "/api/fabric/sip_addresses", p.Basic()},
	} {
		t.Run(op.method+" "+op.path, func(t *testing.T) {
			for name, body := range map[string][]byte{
				"10 MiB":           huge,
				"100,000 brackets": deep,
				"closed brackets":  closed,
				"not UTF-8":        []byte("{\"name\":\"\xff\xfe\"}"),
			} {
				a := p.Do(t, op.method, op.path, op.by, harness.Body("application/json", body)).Want(t, 400, 413)
				if want := map[bool]int{true: 413, false: 400}[name == "10 MiB"]; a.Status != want {
					t.Errorf("%s = %d, want %d", name, a.Status, want)
				}
			}
			p.Do(t, op.method, op.path, op.by, harness.Body("text/plain", []byte(`{"name":"x"}`))).Want(t, 415)
			p.Do(t, op.method, op.path, op.by, harness.Body("application/xml", huge)).Want(t, 413, 415)
		})
	}

	if got := keysOf(t, p, boss)[key.ID]; got.Name != "key" || got.RevokedAt != nil {
		t.Errorf("refused bodies changed the key to %+v", got)
	}
	p.Get(t, me, p.Basic()).Want(t, 200)
}

// TestF11SameReference shows that the same reference in two projects identifies two subscribers,
// each with its own password.
func TestF11SameReference(t *testing.T) {
	var projects [2]*harness.Project
	var subs [2]harness.Subscriber
	for i := range projects {
		projects[i] = project(t)
		subs[i] = harness.Subscriber{Email: "ada@example.com", Password: fmt.Sprint("fathom-lantern-", i)}
		var sat harness.SAT
		body := harness.JSON(map[string]string{"reference": subs[i].Email, "password": subs[i].Password})
		projects[i].Post(t, "/api/fabric/subscribers/tokens", projects[i].Basic(), body).Want(t, 200).Read(t, &sat)
		subs[i].ID = sat.SubscriberID
	}
	if subs[0].ID == subs[1].ID {
		t.Fatal("two projects share one subscriber")
	}

	for i, p := range projects {
		c := p.NewClient(t, "spa", "--access-token", "fabric")
		tokens, _ := c.SignIn(t, subs[i], loginScope)
		info := p.Get(t, "/subscriber/info", harness.Bearer(tokens.AccessToken)).Want(t, 200).Object(t)
		if info["id"] != subs[i].ID {
			t.Errorf("a login to project %d returned the subscriber %v, want %s", i, info["id"], subs[i].ID)
		}

		b := c.Browser()
		page := b.Open(t, c.NewFlow("openid").URL())
		page = b.Submit(t, page, "login-submit",
			map[string]string{"username": subs[i].Email, "password": subs[1-i].Password})
		if !strings.Contains(string(page.Body), "Email or password is wrong") {
			t.Errorf("the password from project %d is accepted in the other project", 1-i)
		}

		p.Do(t, "DELETE", "/api/fabric/resources/subscribers/"+subs[1-i].ID, p.Basic()).Want(t, 404)
		p.Do(t, "DELETE", "/api/fabric/resources/subscribers/"+subs[1-i].ID+"/tokens", p.Basic()).Want(t, 404)
	}
}
