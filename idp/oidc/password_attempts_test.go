package oidc_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/limit"
	pages "github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
	"github.com/selvage/selvage/store"
)

// guesses enters wrong passwords for an account. allowed is how many of them the server must check.
// It must refuse the next one without a check. guesses returns this last response.
func (b *browser) guesses(c idp.Client, email string, allowed int) reply {
	b.w.t.Helper()
	page := b.authorize(request(c))
	for i := range allowed {
		page = b.logIn(page, email, fmt.Sprint("guess-", i))
		if page.status != http.StatusUnprocessableEntity {
			b.w.t.Fatalf("guess %d at %s: status %d, want 422", i, email, page.status)
		}
	}

	page = b.logIn(page, email, "one-too-many")
	if page.status != http.StatusTooManyRequests {
		b.w.t.Fatalf("guess %d at %s: status %d, want 429", allowed, email, page.status)
	}
	retry := page.header.Get("Retry-After")
	if seconds, err := strconv.Atoi(retry); err != nil || seconds < 1 {
		b.w.t.Fatalf("guess %d at %s: Retry-After %q, want a number of seconds", allowed, email, retry)
	}
	return page
}

// TestThrottled shows that, after a few wrong passwords, even the right password is refused for a
// while. The response does not reveal whether the account exists.
func TestThrottled(t *testing.T) {
	w := newWorld(t)
	w.limits.Set(limit.Rates{limit.LoginPerAccount: {Burst: 3, Every: 4 * time.Minute}})
	c, _ := w.client(nil)

	// Start right after a full minute, so that the displayed time is known.
	w.pass(w.now().Truncate(time.Minute).Add(time.Minute + time.Second).Sub(w.now()))
	start := w.now()
	known := w.newBrowser().guesses(c, email, 3)
	until := start.Add(5 * time.Minute).UTC().Truncate(time.Minute).Format("15:04")
	wantText(t, "the page after too many guesses", known,
		`>Too many attempts. Wait until `+until+` UTC (4 minutes), or reset your password.<`, `value="`+email+`"`)

	// The response for an unknown account has the same text.
	unknown := w.newBrowser().guesses(c, "nobody@example.com", 3)
	masked := func(page reply, email string) string {
		id := hiddenID.FindStringSubmatch(page.body)[1]
		return strings.NewReplacer(email, "EMAIL", id, "ID").Replace(noChallenge(page.body))
	}
	if got, want := masked(unknown, "nobody@example.com"), masked(known, email); got != want {
		t.Errorf("the page for an unknown account is %s, want the same as for a known one: %s", got, want)
	}

	// Other spellings of the email address count as the same account.
	for _, spelled := range []string{email, strings.ToUpper(email), " " + email + " "} {
		other := w.newBrowser()
		got := other.logIn(other.authorize(request(c)), spelled, secret)
		wantStatus(t, "the right password of "+spelled+" at a throttled account", got, http.StatusTooManyRequests)
	}

	// After the wait, the right password is accepted any number of times, because only wrong
	// passwords count.
	w.pass(4 * time.Minute)
	for range 5 {
		if got := w.newBrowser().code(c); got == "" {
			t.Error("the right password after the wait is refused")
		}
	}

	w.newBrowser().guesses(c, email, 1)
	must(t, w.idp.Attempts.Unlock(t.Context(), w.ada))
	w.newBrowser().guesses(c, email, 3)
}

// TestParallelGuesses shows that the limit also applies to 64 concurrent guesses on several nodes.
func TestParallelGuesses(t *testing.T) {
	w := newWorld(t)
	w.limits.Set(limit.Rates{limit.LoginPerAccount: {Burst: 10, Every: time.Hour}})
	nodes := []*idp.Provider{w.idp, w.second()}

	var mu sync.Mutex
	answers := make(map[string]int)
	var guesses sync.WaitGroup
	for i := range 64 {
		guesses.Go(func() {
			guess := fmt.Sprint("guess-", i)
			_, err := nodes[i%2].Logins.LogIn(t.Context(), w.project.ID, email, guess, idp.Visitor{})
			mu.Lock()
			defer mu.Unlock()
			answers[fmt.Sprint(err)]++
		})
	}
	guesses.Wait()

	if checked := answers["Email or password is wrong."]; checked != 10 {
		t.Errorf("%d of 64 concurrent guesses were checked, want 10", checked)
	}
	if len(answers) != 2 {
		t.Errorf("the answers to 64 concurrent guesses were %v, want two kinds", answers)
	}
}

// TestThrottledCurrent shows that a signed-in browser cannot be used to guess the current password
// on the page that changes it.
func TestThrottledCurrent(t *testing.T) {
	w := newWorld(t)
	w.limits.Set(limit.Rates{limit.LoginPerDevice: session.Rate{Burst: 2, Every: time.Hour}})
	s, err := w.idp.Logins.LogIn(t.Context(), w.project.ID, email, secret, idp.Visitor{})
	must(t, err)

	for i, want := range []string{
		"current: The current password is wrong.",
		"current: The current password is wrong.",
		"too many requests; try again later",
	} {
		_, err := w.idp.Accounts.ChangePassword(t.Context(), s, "wrong", "another-lantern-9", idp.Visitor{})
		if err == nil || err.Error() != want {
			t.Errorf("guess %d: %v, want %s", i, err, want)
		}
	}

	b := w.newBrowser()
	got := b.onPage(b.account(), "/account/password", "current", secret, "password", "another-lantern-9")
	wantStatus(t, "the right password after wrong ones", got, http.StatusTooManyRequests)
	wantText(t, "the right password after wrong ones", got, "Too many attempts. Wait until")
}

// TestPasswordAsEmail shows that the audit trail does not contain unknown email addresses, because
// people may have typed a password into the wrong field. Repeated attempts with the same text can
// still be recognized.
func TestPasswordAsEmail(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	b := w.newBrowser()

	for range 2 {
		b.logIn(b.authorize(request(c)), "Tr0ub4dor@3horses.example", secret)
	}
	b.logIn(b.authorize(request(c)), email, "wrong")

	refused := audit.Filter{Action: "login", Outcome: audit.Refused}
	trail, err := w.rows.ListAudit(t.Context(), refused, pages.Query{Size: pages.MaxSize})
	must(t, err)
	if len(trail.Items) != 3 {
		t.Fatalf("the trail has %d refused logins, want 3", len(trail.Items))
	}
	known, second, first := trail.Items[0], trail.Items[1], trail.Items[2]

	// The unknown address is masked, but has the same target both times.
	for _, event := range []audit.Event{first, second} {
		if account := event.Detail["account"]; account != "***" {
			t.Errorf("the event names the account %q, want ***", account)
		}
		if whole := strings.ToLower(fmt.Sprintf("%+v", event)); strings.Contains(whole, "3horses") {
			t.Errorf("the event reveals the typed text: %s", whole)
		}
	}
	if first.Target.ID == "" {
		t.Error("the event of an unknown account has no target, want one")
	}
	if second.Target != first.Target {
		t.Errorf("the second attempt has the target %v, want that of the first, %v", second.Target, first.Target)
	}

	if known.Target.ID != w.ada.ID {
		t.Errorf("the event of an existing account has the target %v, want %s", known.Target, w.ada.ID)
	}
	if account := known.Detail["account"]; !strings.HasSuffix(account, "@example.com") {
		t.Errorf("the event of an existing account names %q, want its domain", account)
	}
}

// TestSprayingFromRange shows that the limit of a range of networks is lower than the sum of the
// limits of its networks.
func TestSprayingFromRange(t *testing.T) {
	w := newWorld(t)
	w.limits.Set(limit.Rates{
		limit.LoginPerAccount: limit.Of(5, time.Hour),
		limit.LoginPerNetwork: limit.Of(5, time.Hour),
		limit.LoginPerRange:   limit.Of(7, time.Hour),
	})

	logIn := func(email, password, network string) error {
		_, err := w.idp.Logins.LogIn(t.Context(), w.project.ID, email, password, idp.Visitor{Network: network})
		return err
	}

	checked := 0
	for i := range 20 {
		person, network := fmt.Sprintf("person%d@example.com", i), fmt.Sprintf("2001:db8:1:%d::/64", i)
		if errors.Is(logIn(person, "wrong", network), problem.Unauthenticated) {
			checked++
		}
	}
	if checked != 7 {
		t.Errorf("%d passwords from twenty networks of a range were checked, want 7", checked)
	}

	const otherRange = "2001:db8:2::/64"
	if err := logIn("person@example.com", "wrong", otherRange); !errors.Is(err, problem.Unauthenticated) {
		t.Errorf("a guess from another range: %v, want it to be checked", err)
	}
	// The right password does not count against the limits of the range.
	for range 9 {
		if err := logIn(email, secret, otherRange); err != nil {
			t.Errorf("the right password from the range: %v", err)
		}
	}
}

// slowSubscribers calls meanwhile after it has found a subscriber, and only then returns the
// subscriber.
type slowSubscribers struct {
	*store.Store
	meanwhile func()
}

func (s slowSubscribers) FindSubscriber(ctx context.Context, projectID, id string) (fabric.Subscriber, error) {
	sub, err := s.Store.FindSubscriber(ctx, projectID, id)
	s.meanwhile()
	return sub, err
}

// TestPasswordsChangedTogether shows that a password is not changed with a current password that is
// no longer valid. Otherwise, somebody who knows the old password could undo its replacement.
func TestPasswordsChangedTogether(t *testing.T) {
	w := newWorld(t)
	s, err := w.idp.Logins.LogIn(t.Context(), w.project.ID, email, secret, idp.Visitor{})
	must(t, err)
	const owners, strangers = "granite-otter-nine", "another-lantern-9"
	node := w.idp.Config
	node.Subscribers = slowSubscribers{w.rows, sync.OnceFunc(func() {
		_, err := w.fabric.Subscribers.Update(t.Context(), w.project.ID, w.ada.ID,
			fabric.SubscriberInput{Password: new(owners)})
		must(t, err)
	})}

	_, err = idp.New(node).Accounts.ChangePassword(t.Context(), s, secret, strangers, idp.Visitor{})
	if !errors.Is(err, problem.Unauthenticated) {
		t.Errorf("changing a password that was just replaced: %v, want Unauthenticated", err)
	}
	_, err = w.idp.Logins.LogIn(t.Context(), w.project.ID, email, owners, idp.Visitor{})
	must(t, err)
}

// TestPasswordEndsLogins shows that setting a password on the account page ends the subscriber's
// other logins, even if the password is the old one or the first one.
func TestPasswordEndsLogins(t *testing.T) {
	w := newWorld(t)
	federated, err := w.fabric.Subscribers.Create(t.Context(), w.project.ID,
		fabric.SubscriberInput{Email: new("new@example.com")})
	must(t, err)
	for name, sub := range map[string]fabric.Subscriber{"the old password": w.ada, "the first password": federated} {
		here, err := w.idp.Logins.LogInRegistered(t.Context(), sub, idp.Visitor{})
		must(t, err)
		elsewhere, err := w.idp.Logins.LogInRegistered(t.Context(), sub, idp.Visitor{})
		must(t, err)

		next, err := w.idp.Accounts.ChangePassword(t.Context(), here, secret, secret, idp.Visitor{})
		must(t, err)
		for _, ended := range []idp.Login{here, elsewhere} {
			if err := w.idp.Logins.Live(t.Context(), ended.ID); !errors.Is(err, problem.Unauthenticated) {
				t.Errorf("%s: an earlier login: %v, want Unauthenticated", name, err)
			}
		}
		must(t, w.idp.Logins.Live(t.Context(), next.ID))
	}
}
