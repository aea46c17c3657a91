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

// TestGuessesAtAllNodes guesses passwords at both nodes concurrently: for one account, and for many
// accounts from one network and range. Together, the nodes must count the guesses exactly.
func TestGuessesAtAllNodes(t *testing.T) {
	const allowed, guesses = 5, 24
	one := func(int) string { return "ada@example.com" }
	many := func(i int) string { return fmt.Sprintf("person%d@example.com", i) }
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

			var checked, refused atomic.Int64
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
						checked.Add(1)
					case http.StatusTooManyRequests:
						refused.Add(1)
					}
				})
			}

			all.Wait()
			if n := checked.Load(); n < allowed || n > allowed+1 { // a very slow machine permits one more
				t.Errorf("of %d guesses, %d were checked, want %d", guesses, n, allowed)
			}
			if n := refused.Load(); n != guesses-checked.Load() {
				t.Errorf("of %d guesses, %d were checked and %d refused, want all others refused", guesses,
					checked.Load(), n)
			}
		})
	}
}
