package attack

import (
	"fmt"
	"math/bits"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/selvage/selvage/test/harness"
)

// TestP01Timing shows that a login with an unknown email address takes as long as one with a wrong
// password.
func TestP01Timing(t *testing.T) {
	p := project(t)
	c := p.NewClient(t, "spa")
	sub := p.NewSubscriber(t)
	b := c.Browser()
	page := b.Open(t, c.NewFlow("openid").URL())
	wantAlike(t, "a wrong password", "an unknown email", func() (wrong, unknown time.Duration) {
		return failedLogins(t, b, page, sub)
	})
}

// TestP12ImportedHashes shows that failed logins take the same time whatever hash an account has:
// none, ours, a costly imported one, or a cheap imported one. A login of a disabled account with
// the correct password also takes as long.
func TestP12ImportedHashes(t *testing.T) {
	p := limited(t, "LOGIN_PER_ACCOUNT=0", "LOGIN_PER_NETWORK=0", "LOGIN_PER_RANGE=0")
	c := p.NewClient(t, "spa", "--first-party")
	const password = "fathom lantern"
	imported := func(name string, cost int, disabled bool) harness.Subscriber {
		hash, err := bcrypt.GenerateFromPassword([]byte(password), cost)
		if err != nil {
			t.Fatal(err)
		}
		s := harness.Subscriber{Email: name + "@example.com", Password: password}
		file := filepath.Join(t.TempDir(), "people.csv")
		rows := fmt.Sprintf("email,password_hash,disabled\n%s,%s,%v\n", s.Email, hash, disabled)
		if err := os.WriteFile(file, []byte(rows), 0o600); err != nil {
			t.Fatal(err)
		}
		p.Command(t, "", "subscriber", "import", "--project", p.ID, file)
		return s
	}

	costly, other := imported("costly", 12, false), imported("other", 12, false)
	cheap, disabled := imported("cheap", 4, false), imported("disabled", 4, true)
	costly.Password, cheap.Password = "wrong", "wrong"
	ours := p.NewSubscriber(t)
	ours.Password = "wrong"

	b := c.Browser()
	page := b.Open(t, c.NewFlow("openid").URL())
	fail := func(s harness.Subscriber) time.Duration {
		least := time.Hour
		for range 3 {
			began := time.Now()
			page = b.Submit(t, page, "login-submit", map[string]string{"username": s.Email, "password": s.Password})
			least = min(least, time.Since(began))
		}
		return least
	}

	for _, s := range []harness.Subscriber{ours, costly, cheap, disabled} {
		wantAlike(t, s.Email, "an unknown email", func() (known, unknown time.Duration) {
			return fail(s), fail(harness.Subscriber{Email: "nobody@example.com", Password: "wrong"})
		})
	}

	c.SignIn(t, other, loginScope)
}

// wantAlike measures two actions several times, and compares the shortest time of each. Other work
// on the machine affects the shortest times less than a real difference does. The times may differ
// by a quarter.
func wantAlike(t *testing.T, one, other string, measure func() (a, b time.Duration)) {
	t.Helper()
	var differences []string
	leastA, leastB := time.Hour, time.Hour
	for range 12 {
		a, b := measure()
		leastA, leastB = min(leastA, a), min(leastB, b)
		if (leastA - leastB).Abs() <= leastA/4 {
			return
		}
		differences = append(differences, fmt.Sprintf("%s took %v, %s took %v", one, a, other, b))
	}
	t.Errorf("the times differed in every measurement: %s", strings.Join(differences, "; "))
}

// failedLogins returns the shortest times of two kinds of failed logins. The two kinds of logins
// take turns in the order of the Thue-Morse sequence. If they alternated, the garbage collection
// after every second hash would always affect the same kind.
func failedLogins(
	t *testing.T, b *harness.Browser, page harness.Page, sub harness.Subscriber,
) (wrong, unknown time.Duration) {
	t.Helper()
	const tries = 16

	took := map[bool][]time.Duration{}
	for i := range 2 * tries {
		known := bits.OnesCount(uint(i))%2 == 0
		email := sub.Email
		if !known {
			email = fmt.Sprintf("nobody%d@example.com", i)
		}
		began := time.Now()
		page = b.Submit(t, page, "login-submit", map[string]string{"username": email, "password": "wrong"})
		took[known] = append(took[known], time.Since(began))
	}

	return slices.Min(took[true]), slices.Min(took[false])
}

// TestP02OneAnswer shows that all failed logins get the same response, whatever the reason.
func TestP02OneAnswer(t *testing.T) {
	p := project(t)
	c := p.NewClient(t, "spa")
	known, disabled := p.NewSubscriber(t), p.NewSubscriber(t)
	p.Command(t, "", "subscriber", "update", disabled.ID, "--disabled")
	p.Post(t, "/api/fabric/subscribers/tokens", p.Basic(),
		harness.JSON(map[string]string{"reference": "passwordless@example.com"})).Want(t, 200)

	logins := []harness.Subscriber{
		{Email: known.Email, Password: "wrong"}, {Email: "nobody@example.com", Password: "wrong"},
		{Email: disabled.Email, Password: disabled.Password}, {Email: "passwordless@example.com", Password: "wrong"},
		{Email: "no-address", Password: "wrong"}, {Email: "", Password: "wrong"},
		{Email: known.Email, Password: strings.Repeat("x", 8<<10)},
	}

	var want string
	for _, l := range logins {
		b := c.Browser()
		page := b.Open(t, c.NewFlow("openid").URL())
		page = b.Submit(t, page, "login-submit", map[string]string{"username": l.Email, "password": l.Password})
		id := page.URL.Query().Get("id")
		got := fmt.Sprint(page.Status, len(page.Header.Values("Set-Cookie")),
			plain(page.Answer, `value="`+l.Email+`"`, requestOf(page), id))
		if want == "" {
			want = got
		}
		if got != want {
			t.Errorf("a login as %q differs from the others:\n%s\n%s", l.Email, got, want)
		}

		b.Open(t, c.NewFlow("openid").With("prompt", "none").URL()).WantCallbackError(t, "login_required")
	}
}

// requestOf returns the value of the login form's hidden field id.
func requestOf(p harness.Page) string {
	_, after, found := strings.Cut(string(p.Body), `name="id" value="`)
	id, _, _ := strings.Cut(after, `"`)
	if !found || id == "" {
		return "no hidden field id"
	}
	return id
}

// TestP10NoPassword shows that a subscriber without a password cannot sign in. An email address in
// the login form is never used as a pattern.
func TestP10NoPassword(t *testing.T) {
	p := project(t)
	c := p.NewClient(t, "spa")
	sub := p.NewSubscriber(t)

	const email = "ada@example.com"
	p.Post(t, "/api/fabric/subscribers/tokens", p.Basic(),
		harness.JSON(map[string]string{"reference": email})).Want(t, 200)
	p.Post(t, "/api/fabric/subscribers/tokens", p.Basic(),
		harness.JSON(map[string]string{"reference": email, "password": ""})).Want(t, 200)
	for _, bad := range []any{nil, 0, false, "short", strings.Repeat("x", 73), []string{"long-enough"}} {
		p.Post(t, "/api/fabric/subscribers/tokens", p.Basic(),
			harness.JSON(map[string]any{"reference": email, "password": bad})).Want(t, 200, 422)
	}

	var logins []harness.Subscriber
	for _, pattern := range []string{"%", "*", "' OR 1=1--", "person_@example.com", sub.Email + "\u200b"} {
		logins = append(logins, harness.Subscriber{Email: pattern, Password: sub.Password})
	}
	for _, password := range []string{"", "null", "0", "false", "short", "[]"} {
		logins = append(logins, harness.Subscriber{Email: email, Password: password})
	}

	for _, l := range logins {
		b := c.Browser()
		page := b.Submit(t, b.Open(t, c.NewFlow("openid").URL()), "login-submit",
			map[string]string{"username": l.Email, "password": l.Password})
		if page.Left != nil || page.Has("consent-allow") || !page.Has("login-submit") {
			t.Errorf("the login of %q with the password %q returned %d, want the login page again", l.Email,
				l.Password, page.Status)
		}
	}

	c.SignIn(t, harness.Subscriber{Email: strings.ToUpper(sub.Email), Password: sub.Password}, loginScope)
}

// TestP03Guessing shows that guesses lock an account, so that logins from every address fail even
// with the right password. An unknown account appears to be locked in the same way. The owner can
// still sign in on a device used before. After the account has been unlocked, all logins work
// again.
func TestP03Guessing(t *testing.T) {
	p := limited(t, "SELVAGE_TRUSTED_PROXIES=127.0.0.1", "LOGIN_PER_ACCOUNT=10", "LOGIN_PER_NETWORK=80")
	c := p.NewClient(t, "spa", "--first-party")
	sub := p.NewSubscriber(t)
	_, home := c.SignIn(t, sub, loginScope)

	login := func(b *harness.Browser, email, password string, i int) harness.Page {
		from := harness.Header("X-Forwarded-For", fmt.Sprintf("198.51.100.%d", i))
		page := b.Open(t, c.NewFlow("openid").With("prompt", "login").URL(), from)
		return b.Submit(t, page, "login-submit", map[string]string{"username": email, "password": password}, from)
	}

	var throttled [2]string
	for i, email := range []string{sub.Email, "nobody@example.com"} {
		checked := 0
		for guess := range 12 {
			if login(c.Browser(), email, "wrong", guess).Status == http.StatusUnprocessableEntity {
				checked++
			}
		}
		if checked < 10 || checked > 11 { // on a very slow machine, one more is checked after four minutes
			t.Errorf("%d guesses at %s were checked, want 10", checked, email)
		}
		page := login(c.Browser(), email, sub.Password, 200)
		wantLater(t, page.Answer, "Too many attempts. Wait until ")
		throttled[i] = fmt.Sprint(page.Status, page.Header.Values("Set-Cookie"),
			plain(page.Answer, clock.FindString(string(page.Body)), `value="`+email+`"`, requestOf(page)))
	}

	if throttled[0] != throttled[1] {
		t.Errorf("the pages for a locked account and for an unknown one differ:\n%s\n%s",
			throttled[0], throttled[1])
	}

	if page := login(home, sub.Email, sub.Password, 200); page.Left == nil {
		t.Errorf("a login on a device that the owner used before returned %d, want a redirect", page.Status)
	}
	p.Command(t, "", "subscriber", "unlock", sub.ID)
	if page := login(c.Browser(), sub.Email, sub.Password, 200); page.Left == nil {
		t.Errorf("a login with the right password after unlocking returned %d, want a redirect", page.Status)
	}
}

// clock matches the time and the number of minutes in a page's advice to try again later.
var clock = regexp.MustCompile(`[0-9]{2}:[0-9]{2} UTC \([0-9]+ minutes?\)`)

// TestP06Spraying shows that clients in one network cannot try a password on many accounts. The
// server ignores the address that an untrusted client claims to forward.
func TestP06Spraying(t *testing.T) {
	p := limited(t, "LOGIN_PER_NETWORK=20", "LOGIN_PER_ACCOUNT=10")
	c := p.NewClient(t, "spa")
	b := c.Browser()
	page := b.Open(t, c.NewFlow("openid").URL())

	for i := range 100 {
		page = b.Submit(t, page, "login-submit",
			map[string]string{"username": fmt.Sprintf("person%d@example.com", i), "password": "Summer2026!"},
			harness.Header("X-Forwarded-For", fmt.Sprintf("198.51.100.%d", i)))
		if page.Status == http.StatusTooManyRequests {
			wantLater(t, page.Answer, "Too many attempts. Wait until ")
			if i < 20 {
				t.Errorf("only %d guesses were checked, want 20", i)
			}
			return
		}
	}
	t.Error("100 accounts were tried from one network without a refusal")
}

// TestP11CostlyPasswords shows that rating a password never takes long. The passwords contain
// overlapping patterns, and characters that can stand for several letters.
func TestP11CostlyPasswords(t *testing.T) {
	p := project(t)
	set := func(password string) time.Duration {
		began := time.Now()
		p.Post(t, "/api/fabric/subscribers", p.Basic(), harness.JSON(map[string]string{
			"email":    fmt.Sprintf("p11-%d@example.com", began.UnixNano()),
			"password": password,
		})).Want(t, 201, 422)
		return time.Since(began)
	}

	set("fathom-lantern") // loads the dictionaries, which happens only once
	for _, password := range []string{
		"4@8({[<369&#!1/|0$5+7%24@8({[<36", strings.Repeat("4@8({[<369&#!1/|0$5+7%2", 3), strings.Repeat("1|7!", 18),
		strings.Repeat("12.10.1985 ", 6), strings.Repeat("qweDSAzxc", 8), strings.Repeat("e\u0301", 72),
		strings.Repeat("\U0001f600", 72),
	} {
		if took := set(password); took > 2*time.Second {
			t.Errorf("setting the password %.32q took %v, want at most 2 s", password, took)
		}
	}
}

// TestP07Unicode shows that a password is accepted in any Unicode normal form, but not with a NUL
// character. A login is not costly if the password has many combining marks.
func TestP07Unicode(t *testing.T) {
	p := project(t)
	c := p.NewClient(t, "spa", "--first-party")
	sub := p.NewSubscriber(t)
	const nfc, nfd = "caf\u00e9 lantern \U0001f3ee fathom", "cafe\u0301 lantern \U0001f3ee fathom"
	p.Command(t, nfd, "subscriber", "update", sub.ID, "--password-stdin")

	for _, tt := range []struct {
		name, password string
		opens          bool
	}{
		{"composed", nfc, true}, {"decomposed", nfd, true},
		{"without the accent", "cafe lantern \U0001f3ee fathom", false},
		{"cut off at a NUL", nfc + "\x00", false}, {"with a NUL and a suffix", nfc + "\x00x", false},
		{"8 KiB of marks", strings.Repeat("e\u0301", 4<<10), false},
		{"6,144 marks on one letter", "e" + strings.Repeat("\u0301", 6<<10), false},
	} {

		b := c.Browser()
		began := time.Now()
		page := b.Submit(t, b.Open(t, c.NewFlow("openid").URL()), "login-submit",
			map[string]string{"username": sub.Email, "password": tt.password})
		if opened := page.Left != nil; opened != tt.opens || page.Status >= 500 || time.Since(began) > time.Minute/2 {
			t.Errorf("%s: status %d after %v, signed in: %v, want %v", tt.name, page.Status,
				time.Since(began), opened,
				tt.opens)
		}
	}
}
