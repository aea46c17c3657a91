package nodes

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// TestKeysChangedElsewhere changes an API key at one node. The other node, which has the key in its
// cache, refuses it within a second.
func TestKeysChangedElsewhere(t *testing.T) {
	rows(t)
	harness.NotStorage(t)
	n := two(t)
	here, there := n.Each[0], n.Each[1]
	p := n.NewProject(t)
	boss := harness.Basic(p.ID, p.NewKey(t, append(harness.APIScopes, "Management")...))
	type key struct{ ID, Token string }
	const path = "/api/project/tokens"

	ask := func(k key) harness.Answer {
		return there.Get(t, "/api/fabric/resources/subscribers", harness.Basic(p.ID, k.Token))
	}
	post := func(path string, body any) (k key) {
		here.Post(t, path, boss, harness.JSON(body)).Want(t, 200).Read(t, &k)
		return k
	}

	for name, change := range map[string]func(k key){
		"it is revoked": func(k key) { here.Do(t, "DELETE", path+"/"+k.ID, boss).Want(t, 204) },
		"it loses its scope": func(k key) {
			here.Do(t, "PATCH", path+"/"+k.ID, boss,
				harness.JSON(map[string]any{"permissions": []string{"management"}})).Want(t, 200)
		},
		"it is rotated": func(k key) {
			next := post(path+"/"+k.ID+"/rotate", map[string]int{"overlap": 0})
			ask(next).Want(t, 200) // the new secret is valid immediately
		},
		"it is rotated by the command": func(k key) { here.Command(t, "", "key", "rotate", k.ID, "--overlap", "0") },
	} {
		t.Run(name, func(t *testing.T) {
			k := post(path, map[string]any{"name": name, "permissions": []string{"calling"}})
			ask(k).Want(t, 200)
			change(k)
			harness.WithinASecond(t, "the key at the other node",
				func() error { return ask(k).StatusIs(401) })
		})
	}

	// After a rotation with an overlap, the old secret and the new secret are both valid.
	k := post(path, map[string]any{"name": "overlap", "permissions": []string{"calling"}})
	ask(k).Want(t, 200)
	next := post(path+"/"+k.ID+"/rotate", map[string]any{})
	for _, good := range []key{k, next} {
		ask(good).Want(t, 200)
	}
}

// TestOneReferenceAtTwoNodes requests tokens for an unknown reference from both nodes concurrently.
// All tokens must belong to the same new subscriber.
func TestOneReferenceAtTwoNodes(t *testing.T) {
	rows(t)
	harness.NotStorage(t)
	n := two(t)
	p := n.NewProject(t)

	ids := make([]string, 64)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			var sat harness.SAT
			a, err := n.Each[i%2].TryPatiently("POST", "/api/fabric/subscribers/tokens", p.Basic(),
				harness.JSON(map[string]string{"reference": "ada@example.com"}))
			if err != nil {
				t.Error(err)
			}
			if a.Status == http.StatusOK {
				a.Read(t, &sat)
			}
			ids[i] = sat.SubscriberID
		})
	}
	all.Wait()

	for _, id := range ids {
		if id == "" || id != ids[0] {
			t.Fatalf("%d requests with one reference returned the subscribers %v, want the same one",
				len(ids), ids)
		}
	}

	var list struct{ Data []struct{ ID string } }
	p.Get(t, "/api/fabric/resources/subscribers", p.Basic()).Want(t, 200).Read(t, &list)
	if len(list.Data) != 1 {
		t.Errorf("there are %d subscribers, want 1", len(list.Data))
	}
}

// TestEmbedLimitOfAllNodes uses an embed key at both nodes in turn. The key's limit counts the
// tokens from both nodes.
func TestEmbedLimitOfAllNodes(t *testing.T) {
	const limit = 4
	c := harness.Config{Env: []string{fmt.Sprint("SELVAGE_LIMITS__EMBED_TOKENS=", limit)}}
	n := harness.StartNodes(t, nil, c, c)
	p := n.NewProject(t)
	address := p.Address(t, p.NewSAT(t, "ada").SubscriberID)
	body := harness.JSON(map[string]any{"token": p.CLI(t, "", "token", "embed", "--address", address)["token"]})

	// A new minute, which permits the same number of tokens again, may begin once during the test.
	refused := 0
	for i := range 2*limit + 2 {
		a := n.Each[i%2].Post(t, "/api/fabric/embeds/tokens", body).Want(t, 201, 429)
		if a.Status == http.StatusTooManyRequests {
			refused++
			if a.Header.Get("Retry-After") == "" {
				t.Error("the 429 response has no Retry-After")
			}
		}
	}
	if refused == 0 {
		t.Errorf("none of %d requests was refused, although the key is limited to %d tokens a minute",
			2*limit+2, limit)
	}
}
