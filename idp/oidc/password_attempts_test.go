package oidc_test

import (
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
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/internal/session"
)

// guesses enters wrong passwords for an account. It expects the server to check the first allowed
// passwords, and to refuse the next one without a check. It returns this last response.
func (b *browser) guesses(c idp.Client, email string, allowed int) reply {
	b.w.t.Helper()
	page := b.authorize(request(c))
	for i := range allowed {
		if page = b.logIn(page, email, fmt.Sprint("guess-", i)); page.status != http.StatusUnprocessableEntity {
			b.w.t.Fatalf("guess %d at %s = %d, want 422", i, email, page.status)
		}
	}
	page = b.logIn(page, email, "one-too-many")
	if after, err := strconv.Atoi(page.header.Get("Retry-After")); page.status != http.StatusTooManyRequests ||
		err != nil || after < 1 {
		b.w.t.Fatalf("guess %d at %s = %d, Retry-After %q, want 429", allowed, email, page.status,
			page.header.Get("Retry-After"))
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
	at := w.now()
	b := w.browser()
	known := b.guesses(c, email, 3)
	until := at.Add(5 * time.Minute).UTC().Truncate(time.Minute).Format("15:04")
	want := `>Too many attempts. Wait until ` + until + ` UTC (4 minutes), or reset your password.<`
	if !strings.Contains(known.body, want) || !strings.Contains(known.body, `value="`+email+`"`) {
		t.Errorf("the page is %s, want %s and the email", known.body, want)
	}

	// The response for an unknown account has the same text.
	unknown := w.browser().guesses(c, "nobody@example.com", 3)
	known.body, unknown.body = noChallenge(known.body), noChallenge(unknown.body)
	id := func(r reply) string { return hiddenID.FindStringSubmatch(r.body)[1] }
	if strings.NewReplacer(email, "X", id(known),
		"ID").Replace(known.body) != strings.NewReplacer("nobody@example.com", "X", id(unknown),
		"ID").Replace(unknown.body) {
		t.Error("the answer for an unknown account differs")
	}

	// Other spellings of the email address count as the same account.
	for _, spelled := range []string{email, strings.ToUpper(email), " " + email + " "} {
		other := w.browser()
		if got := other.logIn(other.authorize(request(c)), spelled, secret); got.status != http.StatusTooManyRequests {
			t.Errorf("the right password of %q at a throttled account = %d, want 429", spelled, got.status)
		}
	}

	// After the wait, the right password is accepted any number of times, because only wrong
	// passwords count.
	w.pass(4 * time.Minute)
	for range 5 {
		if got := w.browser().code(c); got == "" {
			t.Error("the right password after the wait is refused")
		}
	}

	w.browser().guesses(c, email, 1)
	must(t, w.idp.Attempts.Unlock(t.Context(), w.ada))
	w.browser().guesses(c, email, 3)
}

// newKnownDevice returns a browser in which the subscriber signed in before strangers used up the
// limits of the account and the network.
func newKnownDevice(t *testing.T) (w *world, c idp.Client, home *browser) {
	t.Helper()
	w = newWorld(t)
	w.limits.Set(limit.Rates{
		limit.LoginPerAccount: {Burst: 3, Every: 4 * time.Minute},
		limit.LoginPerDevice:  {Burst: 3, Every: 4 * time.Minute},
		limit.LoginPerNetwork: {Burst: 5, Every: time.Hour},
	})
	c, _ = w.client(nil)
	home = w.browser()
	home.code(c)

	w.browser().guesses(c, email, 3)
	w.browser().guesses(c, "somebody@example.com", 2) // uses up the network's limit
	return w, c, home
}

// loginAgain opens the login page in a browser that is signed in.
func loginAgain(b *browser, c idp.Client) reply { return b.authorize(request(c, "prompt", "login")) }

// TestKnownDevice shows that strangers' guesses do not lock out a device that signed in before. The
// device has its own count, with the same limit as strangers, and is not locked out for long.
func TestKnownDevice(t *testing.T) {
	w, c, home := newKnownDevice(t)
	login := func(b *browser, page reply) int { return b.logIn(page, email, secret).status }
	if got := login(home, loginAgain(home, c)); got != http.StatusSeeOther {
		t.Errorf("a login from a known device = %d, want 303", got)
	}

	page := loginAgain(home, c)
	for range 3 {
		page = home.logIn(page, email, "wrong-guess")
	}
	if got := login(home, page); got != http.StatusTooManyRequests {
		t.Errorf("a login from a known device after three wrong passwords = %d, want 429", got)
	}

	w.pass(4 * time.Minute)
	if got := login(home, loginAgain(home, c)); got != http.StatusSeeOther {
		t.Errorf("a login from a known device after the wait = %d, want 303", got)
	}
}

// TestDeviceOfOther shows that a device that signed in to another account counts as a stranger's.
func TestDeviceOfOther(t *testing.T) {
	w := newWorld(t)
	w.limits.Set(limit.Rates{limit.LoginPerAccount: {Burst: 3, Every: 4 * time.Minute}})
	c, _ := w.client(nil)
	other, theirs := w.subscriber("grace@example.com"), w.browser()
	theirs.logIn(theirs.authorize(request(c)), other.Email, secret)

	w.browser().guesses(c, email, 3)
	if got := theirs.logIn(loginAgain(theirs, c), email, secret).status; got != http.StatusTooManyRequests {
		t.Errorf("a login from a device of another account = %d, want 429", got)
	}
}

// TestForgedMark shows that altered marks and marks of other accounts do not count.
func TestForgedMark(t *testing.T) {
	w, _, _ := newKnownDevice(t)
	mark, _ := w.idp.DeviceMarks.Mark("", w.subscriber("grace@example.com"), false)
	good, _ := w.idp.DeviceMarks.Mark("", w.ada, false)
	id, codes, _ := strings.Cut(good, ".")
	moved, _, _ := strings.Cut(mark, ".")
	until, mac, _ := strings.Cut(codes, "-")
	later, _ := strconv.ParseInt(until, 10, 64)
	for _, made := range []string{
		mark, "", ".", good + "x", strings.ToUpper(good), moved + "." + codes,
		id + "." + strconv.FormatInt(later+1, 10) + "-" + mac,
		id + "." + until + "-", id, strings.Repeat(good, 20), "\x00" + good,
	} {
		from := idp.Visitor{Network: "192.0.2.1", Device: made}
		if _, err := w.idp.Logins.LogIn(t.Context(), w.project.ID, email, secret, from); err == nil {
			t.Errorf("the forged mark %q is accepted", made)
		}
	}

	if _, err := w.idp.Logins.LogIn(t.Context(), w.project.ID, email, secret, idp.Visitor{Device: good}); err != nil {
		t.Errorf("a valid mark is refused: %v", err)
	}
}

// TestMarkExpires shows that after half a year, a device counts as a stranger's again.
func TestMarkExpires(t *testing.T) {
	w := newWorld(t)
	w.limits.Set(limit.Rates{limit.LoginPerAccount: {Burst: 1, Every: 200 * 24 * time.Hour}})
	c, _ := w.client(nil)
	edsger := w.subscriber("edsger@example.com")
	mark, _ := w.idp.DeviceMarks.Mark("", edsger, false)
	w.browser().guesses(c, edsger.Email, 1)
	w.pass(181 * 24 * time.Hour)
	if _, err := w.idp.Logins.LogIn(t.Context(), w.project.ID, edsger.Email, secret,
		idp.Visitor{Device: mark}); err == nil {
		t.Error("a mark is accepted after half a year")
	}
}

// TestDeviceMark shows that a mark names only a few accounts, most recent first. Its size is
// therefore limited.
func TestDeviceMark(t *testing.T) {
	w := newWorld(t)
	w.limits.Set(limit.Rates{limit.LoginPerAccount: {Burst: 1, Every: time.Hour}})
	mark := ""
	for i := range 40 {
		mark, _ = w.idp.DeviceMarks.Mark(mark, fabric.Subscriber{ID: fmt.Sprint("subscriber-", i%8)}, false)
	}

	mark, kept := w.idp.DeviceMarks.Mark(mark, w.ada, false)
	again, _ := w.idp.DeviceMarks.Mark(mark, w.ada, false)
	if len(mark) > 512 || kept < 90*24*time.Hour || len(again) != len(mark) {
		t.Errorf("marks of %d and %d bytes are kept for %v", len(mark), len(again), kept)
	}
	for range 3 {
		if _, err := w.idp.Logins.LogIn(t.Context(), w.project.ID, email, secret,
			idp.Visitor{Device: again}); err != nil {
			t.Error(err)
		}
	}
}

// TestParallelGuesses shows that the limit also applies to 64 concurrent guesses on several nodes.
func TestParallelGuesses(t *testing.T) {
	w := newWorld(t)
	w.limits.Set(limit.Rates{limit.LoginPerAccount: {Burst: 10, Every: time.Hour}})
	nodes := []*idp.Provider{w.idp, w.second()}

	var mu sync.Mutex
	answers := make(map[string]int)
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			_, err := nodes[i%2].Logins.LogIn(t.Context(), w.project.ID, email, fmt.Sprint("guess-", i), idp.Visitor{})
			mu.Lock()
			defer mu.Unlock()
			answers[fmt.Sprint(err)]++
		})
	}

	all.Wait()
	if answers["Email or password is wrong."] != 10 || len(answers) != 2 {
		t.Errorf("the answers to 64 concurrent guesses were %v, want 10 checked", answers)
	}
}

// TestThrottledCurrent shows that a signed-in browser cannot be used to guess the current password
// on the page that changes it.
func TestThrottledCurrent(t *testing.T) {
	w := newWorld(t)
	w.limits.Set(limit.Rates{limit.LoginPerDevice: session.Rate{Burst: 2, Every: time.Hour}})
	s, err := w.idp.Logins.LogIn(t.Context(), w.project.ID, email, secret, idp.Visitor{})
	must(t, err)

	for i, want := range []string{"current: The current password is wrong.",
		"current: The current password is wrong.", "too many requests; try again later"} {
		if _, err := w.idp.Accounts.ChangePassword(t.Context(), s, "wrong", "another-lantern-9",
			idp.Visitor{}); err == nil || err.Error() != want {
			t.Errorf("guess %d = %v, want %s", i, err, want)
		}
	}

	b := w.browser()
	got := b.onPage(b.account(), "/account/password", "current", secret, "password", "another-lantern-9")
	if got.status != http.StatusTooManyRequests || !strings.Contains(got.body, "Too many attempts. Wait until") {
		t.Errorf("POST /account/password = %d %s, want 429", got.status, got.body)
	}
}

// TestPasswordAsEmail shows that the audit trail does not contain unknown email addresses, because
// people may have typed a password into the wrong field. Repeated attempts with the same text can
// still be recognized.
func TestPasswordAsEmail(t *testing.T) {
	w := newWorld(t)
	c, _ := w.client(nil)
	b := w.browser()

	for range 2 {
		b.logIn(b.authorize(request(c)), "Tr0ub4dor@3horses.example", secret)
	}
	b.logIn(b.authorize(request(c)), email, "wrong")

	trail, err := w.rows.ListAudit(t.Context(), audit.Filter{Action: "login", Outcome: audit.Refused},
		page.Query{Size: page.MaxSize})
	if err != nil || len(trail.Items) != 3 {
		t.Fatalf("ListAudit = %d, %v, want three refused logins", len(trail.Items), err)
	}
	known, last, first := trail.Items[0], trail.Items[1], trail.Items[2]

	// The unknown address is masked, but has the same target both times.
	for _, e := range []audit.Event{last, first} {
		if all := strings.ToLower(fmt.Sprintf("%+v", e)); strings.Contains(all, "3horses") ||
			e.Detail["account"] != "***" {
			t.Errorf("the event reveals the typed text: %s", all)
		}
	}
	if last.Target != first.Target || last.Target.ID == "" {
		t.Errorf("the targets are %v and %v, want the same", first.Target, last.Target)
	}

	if known.Target.ID != w.ada.ID || !strings.HasSuffix(known.Detail["account"], "@example.com") {
		t.Errorf("the event of an existing account is %+v", known)
	}
}

// TestSprayingFromRange shows that the limit of a range of networks is lower than the sum of the
// limits of its networks.
func TestSprayingFromRange(t *testing.T) {
	w := newWorld(t)
	w.limits.Set(limit.Rates{limit.LoginPerAccount: limit.Of(5, time.Hour),
		limit.LoginPerNetwork: limit.Of(5, time.Hour), limit.LoginPerRange: limit.Of(7, time.Hour)})

	spray := func(email, network string) error {
		_, err := w.idp.Logins.LogIn(t.Context(), w.project.ID, email, "wrong", idp.Visitor{Network: network})
		return err
	}

	looked := 0
	for i := range 20 {
		if errors.Is(spray(fmt.Sprintf("person%d@example.com", i), fmt.Sprintf("2001:db8:1:%d::/64", i)),
			problem.Unauthenticated) {
			looked++
		}
	}
	if looked != 7 {
		t.Errorf("%d passwords from twenty networks of a range were checked, want 7", looked)
	}

	if err := spray("person@example.com", "2001:db8:2::/64"); !errors.Is(err, problem.Unauthenticated) {
		t.Errorf("a guess from another range = %v, want it to be checked", err)
	}
	// The right password does not count against the limits of the range.
	for range 9 {
		if _, err := w.idp.Logins.LogIn(t.Context(), w.project.ID, email, secret,
			idp.Visitor{Network: "2001:db8:2::/64"}); err != nil {
			t.Errorf("the right password from the range = %v", err)
		}
	}
}

// TestDeviceOfAnotherPassword shows that marks from before a change of the password no longer
// exempt a device from the limits for strangers.
func TestDeviceOfAnotherPassword(t *testing.T) {
	w := newWorld(t)
	w.limits.Set(limit.Rates{limit.LoginPerAccount: {Burst: 1, Every: time.Hour}})
	mark, _ := w.idp.DeviceMarks.Mark("", w.ada, false)

	fresh := "granite-otter-nine"
	changed, err := w.fabric.Subscribers.Update(t.Context(), w.project.ID, w.ada.ID,
		fabric.SubscriberInput{Password: &fresh})
	must(t, err)

	w.browser().guesses(first(w.client(nil)), email, 1)
	if _, err := w.idp.Logins.LogIn(t.Context(), w.project.ID, email, fresh,
		idp.Visitor{Device: mark}); !errors.Is(err, problem.RateLimited) {
		t.Errorf("a login with a mark from before the new password = %v, want it throttled", err)
	}

	mark, _ = w.idp.DeviceMarks.Mark(mark, changed, false)
	if _, err := w.idp.Logins.LogIn(t.Context(), w.project.ID, email, fresh, idp.Visitor{Device: mark}); err != nil {
		t.Errorf("a login with a mark from after the new password = %v, want it accepted", err)
	}
}

func first(c idp.Client, _ string) idp.Client { return c }
