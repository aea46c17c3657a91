package conformance

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/selvage/selvage/test/harness"
)

// scopeClaims lists the claims that each scope requests (OpenID Connect Core, section 5.4). The
// suite warns if one is missing.
var scopeClaims = map[string][]string{
	"openid": {"sub"},
	"profile": {
		"name", "given_name", "family_name", "middle_name", "nickname", "profile", "picture", "website",
		"gender", "birthdate", "zoneinfo", "locale",
		"updated_at", "preferred_username",
	},
	"email":   {"email", "email_verified"},
	"address": {"address"},
	"phone":   {"phone_number", "phone_number_verified"},
}

func userInfoGet(m *module) {
	m.request().flow()
}

func userInfoPostHeader(m *module) {
	s := m.request().flow()
	m.checkUserInfo(s, m.op.Post(m, m.op.endpoint(m, "userinfo_endpoint"), harness.Bearer(s.AccessToken)))
}

// userInfoPostBody sends the token in the body (RFC 6750, section 2.2).
func userInfoPostBody(m *module) {
	s := m.request().flow()
	m.checkUserInfo(s, m.op.Post(m, m.op.endpoint(m, "userinfo_endpoint"),
		harness.Form(url.Values{"access_token": {s.AccessToken}})))
}

// checkUserInfo checks a response of the userinfo endpoint and returns its claims (OpenID Connect
// Core, section 5.3.2).
func (m *module) checkUserInfo(s signedIn, a harness.Answer) map[string]any {
	m.Helper()
	a.Want(m, 200)
	m.check(isJSON(a), "Content-Type of userinfo = %q, want application/json", a.Header.Get("Content-Type"))
	info := a.Object(m)
	m.check(info["sub"] == s.sub(), "userinfo has sub %v, the ID token has %s", info["sub"], s.sub())

	for name, value := range info {
		if err := checkStandard(name, value); err != nil {
			m.Errorf("userinfo has an invalid claim: %v", err)
		}
	}

	if info["updated_at"] != nil {
		at := m.moment(info, "updated_at")
		m.check(at.Year() >= 1990 && time.Until(at) < skew, "updated_at = %v", at)
	}
	return info
}

// checkStandard checks the value of a standard claim (OpenID Connect Core, section 5.1). Strings
// must not be empty.
func checkStandard(name string, value any) error {
	switch name {
	case "email_verified", "phone_number_verified":
		if _, ok := value.(bool); !ok {
			return fmt.Errorf("%s = %v is not a boolean", name, value)
		}
	case "updated_at":
		if _, ok := value.(float64); !ok {
			return fmt.Errorf("%s = %v is not a number", name, value)
		}
	case "address":
		members, _ := value.(map[string]any)
		for member, v := range members {
			if err := checkStandard("address."+member, v); err != nil {
				return err
			}
		}
		if len(members) == 0 {
			return fmt.Errorf("%s = %v is not an object with members", name, value)
		}
	case "birthdate":
		if s, _ := value.(string); !isBirthdate(s) {
			return fmt.Errorf("%s = %v is not a date that the suite accepts as a birthdate", name, value)
		}
	default:
		if s, ok := value.(string); !ok || strings.TrimSpace(s) == "" || strings.EqualFold(s, "null") {
			return fmt.Errorf("%s = %v is not text", name, value)
		}
	}

	return nil
}

// isBirthdate reports whether s is a date, a date without a year, or only a year. Like the suite,
// it accepts no year before 1850 and no year in the future.
func isBirthdate(s string) bool {
	year, _, full := strings.Cut(s, "-")
	if full {
		if year == "0000" {
			s = "2000" + s[len(year):] // also a leap year, so 29 February is valid
		}
		if _, err := time.Parse(time.DateOnly, s); err != nil {
			return false
		}
	}
	n, err := strconv.Atoi(year)
	return err == nil && (full && n == 0 || n >= 1850 && n <= time.Now().Year())
}

func scopeProfile(m *module) { m.scopes("profile") }
func scopeAddress(m *module) { m.scopes("address") }
func scopePhone(m *module)   { m.scopes("phone") }
func scopeAll(m *module)     { m.scopes("email", "phone", "address", "profile") }

// scopeEmail requests only the email address. userinfo must not contain the name. If there is an
// access token, the ID token must contain neither.
func scopeEmail(m *module) {
	if s, info := m.scopes("email"); info != nil {
		m.check(info["name"] == nil, "userinfo contains a name although the scope is email")
		m.check(s.AccessToken == "" || s.claims["name"] == nil && s.claims["email"] == nil,
			"the ID token contains a name or an email address")
	}
}

// scopes requests scopes in addition to openid, and checks that their claims are in userinfo. If a
// scope is not offered, it skips the module and returns no claims.
func (m *module) scopes(scopes ...string) (signedIn, map[string]any) {
	m.Helper()
	return m.scopesOf(nil, scopes...)
}

// scopesOf is like scopes. If alter is not nil, it returns another URL for the request.
func (m *module) scopesOf(alter func(request) string, scopes ...string) (s signedIn, info map[string]any) {
	m.Helper()
	for _, scope := range scopes {
		if !m.op.offers("scopes_supported", scope) {
			m.skip("scopes_supported has no %s", scope)
			return s, nil
		}
	}

	r := m.request("scope", strings.Join(append([]string{"openid"}, scopes...), " "))
	where := r.url()
	if alter != nil {
		where = alter(r)
	}
	s = r.finish(m.parameters(m.signIn(m.browser.Open(m, where))))
	info = m.userInfo(s)

	var lacks []string
	for _, scope := range scopes {
		for _, claim := range scopeClaims[scope] {
			if info[claim] == nil {
				lacks = append(lacks, claim)
			}
		}
	}
	if lacks != nil {
		slices.Sort(lacks)
		m.warn("userinfo lacks %s", strings.Join(lacks, ", "))
	}
	return s, info
}

// alternateHappyFlow sends scopes and parameters in a different order.
func alternateHappyFlow(m *module) {
	s, info := m.scopesOf(func(r request) string {
		r.Set("scope", "email openid")
		params := strings.Split(r.Encode(), "&")
		slices.Reverse(params)
		return m.op.endpoint(m, "authorization_endpoint") + "?" + strings.Join(params, "&")
	}, "email")
	m.check(info["name"] == nil && (s.AccessToken == "" || s.claims["name"] == nil && s.claims["email"] == nil),
		"a name or an email address was returned where it was not requested")
}

// claimsEssential requests the name with the claims parameter (OpenID Connect Core, section 5.5).
// It requests the name in userinfo, so the ID token must not contain it. Without an access token,
// it requests the name in the ID token.
func claimsEssential(m *module) {
	where := "userinfo"
	if m.kind == "id_token" {
		where = "id_token"
	}
	r := m.request("claims", `{"`+where+`":{"name":{"essential":true}}}`)
	s := r.finish(r.answer())
	info := m.userInfo(s)
	if info["name"] == nil {
		m.warn("userinfo has no name")
	}
	m.check(where == "id_token" || s.claims["name"] == nil,
		"the ID token contains a name, which was requested for userinfo")
}
