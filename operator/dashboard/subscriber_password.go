package dashboard

import (
	"crypto/rand"
	"net/http"
	"strings"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
)

// generatePassword sets a random password in the input if the operator asked for one, and returns
// it. Otherwise it returns "".
func (a *subscriberPages) generatePassword(v *visit, in *fabric.SubscriberInput) (string, error) {
	if v.form.Get("generate") == "" {
		return "", nil
	}
	if in.Password != nil {
		return "", problem.BadParam("password", "Enter a password or generate one, but not both.")
	}

	least, _ := a.Fabric.Subscribers.PasswordLength()
	text := randomPassword(least)
	in.Password = &text
	return text, nil
}

// randomPassword returns a random password of at least the given length, and of at least 100 bits.
// It consists of groups of five letters and digits, which are easy to read out.
func randomPassword(least int) string {
	var groups []string
	for n := 0; n < max(least, 20); n += 5 {
		groups = append(groups, strings.ToLower(rand.Text()[:5]))
	}
	return strings.Join(groups, "-")
}

// showPassword responds with a subscriber's page, which shows the generated password once.
func (a *subscriberPages) showPassword(v *visit, s fabric.Subscriber, text string) error {
	v.r.SetPathValue("id", s.ID)
	return a.subscriberPage(v, http.StatusOK, nil, shownOnce{Password: text})
}
