package oidc

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"

	"github.com/selvage/selvage/idp"
	"github.com/selvage/selvage/internal/problem"
)

// Every form carries something that no other site can know, in addition to the check of
// its origin (see sameOrigin):
//
//   - in a login, the id of its authorization request, which only the browser that began
//     the request may answer;
//   - on the account page, a token for the login that the page was shown to;
//   - on other pages, a token for the mark of the browser.

var errForm = pageError(http.StatusForbidden, "error.form-other", "error.form-other-text")

// sign returns the token of forms of a kind, for one login or browser.
func (pg *pages) sign(kind, id string) string {
	key := pg.Ring.Derive(kind)
	mac := hmac.New(sha256.New, key[:])
	mac.Write([]byte(id))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// formToken returns the token in the forms of the account page, for the login that it is
// shown to.
func (pg *pages) formToken(s idp.Login) string { return pg.sign("account form", s.ID) }

// pageToken returns the token in the forms of other pages, for the browser that they are
// shown to.
func (pg *pages) pageToken(w http.ResponseWriter, r *http.Request) string {
	return pg.sign("page form", pg.cookies.Flow(w, r))
}

// pageForm reads a form that carries a pageToken.
func (pg *pages) pageForm(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	form, err := postForm(w, r)
	if err != nil {
		return nil, err
	}
	mark := pg.cookies.FlowOf(r)
	if mark == "" || !sameToken(form, pg.sign("page form", mark)) {
		return nil, errForm
	}
	return form, nil
}

func sameToken(form url.Values, token string) bool {
	return hmac.Equal([]byte(form.Get("token")), []byte(token))
}

// requestForm reads a form that belongs to a suspended request, and the request.
func (pg *pages) requestForm(w http.ResponseWriter, r *http.Request) (url.Values, idp.AuthRequest, idp.Client, error) {
	form, err := postForm(w, r)
	if err != nil {
		return nil, idp.AuthRequest{}, idp.Client{}, err
	}
	if form.Get("id") == "" || pg.cookies.FlowOf(r) == "" {
		return nil, idp.AuthRequest{}, idp.Client{}, errForm
	}

	req, c, err := pg.Requests.Resume(r.Context(), form.Get("id"), pg.cookies.FlowOf(r))
	if errors.Is(err, problem.Forbidden) {
		err = errForm
	}
	learn(r, req, c)
	if errors.Is(err, problem.NotFound) {
		err = errRequestGone
	}
	return form, req, c, err
}
