package oidc

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/problem"
)

// The origin of every form is checked; see sameOrigin. In addition, every form contains a secret
// that other sites cannot know:
//
//   - in a login, the ID of its authorization request, which only the browser that began the
//     request may answer;
//   - on the account page, a token for the login in which the page was shown;
//   - on pages that a link in an email opens, the token of the link;
//   - on other pages, a token for the browser's mark.

var errForm = pageError(http.StatusForbidden, "error.form-other", "error.form-other-text")

// sign returns the form token of this kind for the login, subscriber or browser with this id.
func (pg *pages) sign(kind, id string) string { return signWith(pg.Ring.Derive(kind), id) }

func signWith(key [sha256.Size]byte, id string) string {
	mac := hmac.New(sha256.New, key[:])
	mac.Write([]byte(id))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// signed reports whether a form contains the token of this kind for id. The token may have been
// created before the master key was replaced.
func (pg *pages) signed(form url.Values, kind, id string) bool {
	for _, key := range pg.Ring.DeriveTrusted(kind) {
		if sameToken(form, signWith(key, id)) {
			return true
		}
	}
	return false
}

// formToken returns the token for the forms on an account page that is shown in login s. The token
// consists of a part for the login, a part for the subscriber, and a random part that differs for each
// page; see account.once.
func (pg *pages) formToken(s idp.Login) string {
	return pg.sign("account form", s.ID) + "." + pg.sign("account form of", s.SubscriberID) + "." + rand.Text()
}

// isFormOf reports whether a form comes from an account page that was shown to the subscriber, in any
// login.
func (pg *pages) isFormOf(form url.Values, subscriberID string) bool {
	_, rest, _ := strings.Cut(form.Get("token"), ".")
	return pg.signed(url.Values{"token": {rest}}, "account form of", subscriberID)
}

// pageToken returns the token for the forms on other pages that are shown to the browser of r.
func (pg *pages) pageToken(w http.ResponseWriter, r *http.Request) string {
	return pg.sign("page form", pg.cookies.Flow(w, r))
}

// pageForm reads a form and checks its pageToken.
func (pg *pages) pageForm(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	form, err := postForm(w, r)
	if err != nil {
		return nil, err
	}
	mark := pg.cookies.FlowOf(r)
	if mark == "" || !pg.signed(form, "page form", mark) {
		return nil, errForm
	}
	return form, nil
}

// sameToken reports whether the first part of a form's token equals token.
func sameToken(form url.Values, token string) bool {
	sent, _, _ := strings.Cut(form.Get("token"), ".")
	return hmac.Equal([]byte(sent), []byte(token))
}

// requestForm reads a form together with the suspended request that it names.
func (pg *pages) requestForm(w http.ResponseWriter, r *http.Request) (url.Values, idp.AuthRequest, idp.Client, error) {
	form, err := postForm(w, r)
	if err != nil {
		return nil, idp.AuthRequest{}, idp.Client{}, err
	}
	id := form.Get("id")
	mark := pg.cookies.FlowOfRequest(r, id)
	if id == "" || mark == "" {
		return nil, idp.AuthRequest{}, idp.Client{}, errForm
	}

	req, c, err := pg.Requests.Resume(r.Context(), id, mark)
	if errors.Is(err, problem.Forbidden) {
		err = errForm
	}
	learn(r, req, c)
	if errors.Is(err, problem.NotFound) {
		err = errRequestGone
	}
	return form, req, c, err
}
