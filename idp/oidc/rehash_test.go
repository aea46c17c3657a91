package oidc_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
)

// foreign lists hashes of "fathom lantern" made by other programs.
var foreign = []string{
	"$2y$05$abcdefghijklmnopqrstuuQK5DHw8D1SIn9Sz2V9ppg8cVg9O7VlS",
	"$scrypt$ln=10,r=8,p=1$AAECAwQFBgcICQoLDA0ODw$3vB4whHS7NUXU6GM+M8u137IcGWy4Ua3FouuuyUplew",
	"pbkdf2_sha256$1000$seasalt2$H7g0RwoD7RDtwUcGO0xSri+Xz8XqNWjcsB2MyzpwgLU=",
}

// TestRehash shows that imported hashes are accepted, and replaced at the first login. Concurrent
// logins on two nodes all succeed.
func TestRehash(t *testing.T) {
	w := newWorld(t)
	nodes := []*idp.Provider{w.idp, w.second()}
	logIn := func(node *idp.Provider, address, password string) error {
		_, err := node.Logins.LogIn(t.Context(), w.project.ID, address, password, idp.Visitor{})
		return err
	}

	for i, hash := range foreign {
		address := fmt.Sprintf("imported%d@example.com", i)
		sub, err := w.fabric.Subscribers.Create(t.Context(), w.project.ID,
			fabric.SubscriberInput{Email: &address, PasswordHash: &hash})
		must(t, err)

		// A wrong password is refused, and does not replace the hash.
		if err := logIn(w.idp, address, "fathom  lantern"); err == nil {
			t.Errorf("a wrong password is accepted for %s", hash)
		}
		before, err := w.fabric.Subscribers.Find(t.Context(), w.project.ID, sub.ID)
		must(t, err)
		if before.PasswordHash != hash {
			t.Errorf("after a wrong password, the hash is %s, want %s", before.PasswordHash, hash)
		}

		var logins sync.WaitGroup
		for n := range 8 {
			logins.Go(func() {
				if err := logIn(nodes[n%2], address, "fathom lantern"); err != nil {
					t.Errorf("the right password for %s: %v", hash, err)
				}
			})
		}
		logins.Wait()

		after, err := w.fabric.Subscribers.Find(t.Context(), w.project.ID, sub.ID)
		must(t, err)
		if !strings.HasPrefix(after.PasswordHash, "$argon2id$") {
			t.Errorf("after logins, the hash %s is replaced by %s, want an Argon2id hash", hash, after.PasswordHash)
		}
		if w.idp.Passwords.Stale(after.PasswordHash) {
			t.Errorf("after logins, the hash %s is replaced by %s, want the parameters of new hashes",
				hash, after.PasswordHash)
		}
		must(t, logIn(w.idp, address, "fathom lantern"))
	}
}
