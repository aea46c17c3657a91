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
	for i, hash := range foreign {
		email := fmt.Sprintf("imported%d@example.com", i)
		s, err := w.fabric.Subscribers.Create(t.Context(), w.project.ID,
			fabric.SubscriberInput{Email: &email, PasswordHash: &hash})
		must(t, err)

		// A wrong password is refused, and does not replace the hash.
		if _, err := w.idp.Logins.LogIn(t.Context(), w.project.ID, email, "fathom  lantern",
			idp.Visitor{}); err == nil {
			t.Errorf("a wrong password is accepted for %s", hash)
		}
		if got, err := w.fabric.Subscribers.Find(t.Context(), w.project.ID, s.ID); err != nil ||
			got.PasswordHash != hash {
			t.Errorf("a wrong password replaced %s by %s, want no change", hash, got.PasswordHash)
		}

		var all sync.WaitGroup
		for n := range 8 {
			all.Go(func() {
				if _, err := nodes[n%2].Logins.LogIn(t.Context(), w.project.ID, email, "fathom lantern",
					idp.Visitor{}); err != nil {
					t.Errorf("the right password for %s: %v", hash, err)
				}
			})
		}
		all.Wait()

		after, err := w.fabric.Subscribers.Find(t.Context(), w.project.ID, s.ID)
		must(t, err)
		if !strings.HasPrefix(after.PasswordHash, "$argon2id$") || w.idp.Passwords.Stale(after.PasswordHash) {
			t.Errorf("after logins %s is %s, want one of our hashes", hash, after.PasswordHash)
		}
		_, err = w.idp.Logins.LogIn(t.Context(), w.project.ID, email, "fathom lantern", idp.Visitor{})
		must(t, err)
	}
}
