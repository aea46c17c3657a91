package nodes

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/selvage/selvage/test/harness"
)

// TestGuessesAtAllNodes guesses passwords at both nodes concurrently, for one account and for many
// accounts from one network and range. Together, the nodes count the guesses exactly.
func TestGuessesAtAllNodes(t *testing.T) {
	const allowed, guesses = 5, 24
	one, many := func(int) string { return "ada@example.com" }, func(i int) string {
		return fmt.Sprintf("person%d@example.com", i)
	}
	for limit, email := range map[string]func(i int) string{
		"LOGIN_PER_ACCOUNT": one,
		"LOGIN_PER_NETWORK": many,
		"LOGIN_PER_RANGE":   many,
	} {
		t.Run(limit, func(t *testing.T) {
			c := harness.Config{Env: []string{fmt.Sprint("SELVAGE_LIMITS__", limit, "=", allowed)}}
			n := harness.StartNodes(t, nil, c, harness.Config{Env: slices.Clone(c.Env)})
			client := n.NewProject(t).NewClient(t, "spa", "--first-party")

			guess := func(b *harness.Browser, page harness.Page, email string) int {
				return b.Submit(t, page, "login-submit",
					map[string]string{"username": email, "password": "Summer2026!"}).Status
			}

			var looked, refused atomic.Int64
			var all sync.WaitGroup
			for i := range guesses {
				b := client.Browser()
				page := b.Open(t, client.NewFlow("openid").URL()) // the nodes receive the forms in turn
				all.Go(func() {
					var status int
					harness.Patiently(func() (int, error) { // an attempt that was not checked does not count
						status = guess(b, page, email(i))
						return status, nil
					})
					switch status {
					case http.StatusUnprocessableEntity:
						looked.Add(1)
					case http.StatusTooManyRequests:
						refused.Add(1)
					}
				})
			}

			all.Wait()
			if looked.Load() < allowed || looked.Load() > allowed+1 ||
				looked.Load()+refused.Load() != guesses { // a very slow machine permits one more
				t.Errorf("of %d guesses, %d were checked and %d refused, want only %d checked", guesses,
					looked.Load(), refused.Load(), allowed)
			}
		})
	}
}
