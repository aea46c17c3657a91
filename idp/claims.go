package idp

import (
	"encoding/json"
	"slices"

	"github.com/selvage/selvage/fabric"
)

// Claims are the claims that a request asks for by name, in addition to the claims of its scopes
// (OpenID Connect Core, section 5.5).
type Claims struct {
	Userinfo []string `json:"userinfo,omitempty"`
	IDToken  []string `json:"id_token,omitempty"`
	ACR      string   `json:"acr,omitempty"` // class to report, if the client requested a class below the login's
}

// claimScopes maps each claim about a subscriber to its scope (OpenID Connect Core,
// section 5.4).
var claimScopes = map[string]string{
	"name": "profile", "given_name": "profile", "family_name": "profile", "middle_name": "profile",
	"nickname":           "profile",
	"preferred_username": "profile", "profile": "profile", "picture": "profile", "website": "profile",
	"gender":    "profile",
	"birthdate": "profile", "zoneinfo": "profile", "locale": "profile", "updated_at": "profile",
	"email": "email", "email_verified": "email", "address": "address", "phone_number": "phone",
	"phone_number_verified": "phone",
}

// ClaimsOf returns the names of the claims in the given scopes, sorted.
func ClaimsOf(scopes ...string) (names []string) {
	for name, scope := range claimScopes {
		if slices.Contains(scopes, scope) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// A Person holds claims about a subscriber (OpenID Connect Core, section 5.1).
type Person struct {
	Name          string `json:"name,omitempty"`
	GivenName     string `json:"given_name,omitempty"`
	FamilyName    string `json:"family_name,omitempty"`
	Zoneinfo      string `json:"zoneinfo,omitempty"`
	UpdatedAt     int64  `json:"updated_at,omitempty"`
	Email         string `json:"email,omitempty"`
	EmailVerified *bool  `json:"email_verified,omitempty"`
	fabric.StandardClaims
}

// PersonOf returns the named claims about a subscriber. Names of other claims are ignored.
func PersonOf(s fabric.Subscriber, names []string) (p Person) {
	for _, name := range names {
		switch name {
		case "name":
			p.Name = s.FullName()
		case "given_name":
			p.GivenName = s.FirstName
		case "family_name":
			p.FamilyName = s.LastName
		case "zoneinfo":
			p.Zoneinfo = s.TimeZone
		case "updated_at":
			p.UpdatedAt = s.Updated.Unix()
		case "email":
			p.Email = s.Email
		case "email_verified":
			if s.Email != "" {
				p.EmailVerified = &s.Verified
			}
		default:
			p.copyClaim(s.Claims, name)
		}
	}
	return p
}

// copyClaim copies the claim with the given name from c to p.
func (p *Person) copyClaim(c fabric.StandardClaims, name string) {
	switch name {
	case "middle_name":
		p.MiddleName = c.MiddleName

	case "nickname":
		p.Nickname = c.Nickname
	case "preferred_username":
		p.PreferredUsername = c.PreferredUsername
	case "profile":
		p.ProfilePage = c.ProfilePage
	case "picture":
		p.Picture = c.Picture
	case "website":
		p.Website = c.Website
	case "gender":
		p.Gender = c.Gender
	case "birthdate":
		p.Birthdate = c.Birthdate
	case "locale":
		p.Locale = c.Locale
	case "phone_number":
		p.PhoneNumber = c.PhoneNumber
	case "phone_number_verified":
		p.PhoneNumberVerified = c.PhoneNumberVerified
	case "address":
		p.Address = c.Address
	}
}

// left returns the claims in names that remain if the client asks for a narrower scope than it was
// granted. It drops each claim whose scope was granted but is not in scope.
func (g Grant) left(names, scope []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return slices.Contains(g.Scope, claimScopes[name]) && !slices.Contains(scope, claimScopes[name])
	})
}

// onlyClaims returns the named claims whose scopes the client may request.
func (c Client) onlyClaims(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return !slices.Contains(c.Scopes, claimScopes[name])
	})
}

// FabricAccess is the right to act as a subscriber in the fabric. Every fabric token has this
// right, whatever its scopes are. People consent to it in the same way as to scopes, but it is not
// a scope. A client gets the right if its access tokens are fabric tokens.
const FabricAccess = "fabric"

// Rights returns the rights to which people must consent before the client's request is answered.
// These are the requested scopes, the scopes of the requested claims, and the resources. If the
// client gets a fabric token, [FabricAccess] is added. Resources are URIs, so they cannot be
// mistaken for scopes.
func (c Client) Rights(a AuthRequest) []string {
	rights := slices.Clone(a.Scope)
	for _, name := range slices.Concat(a.Claims.Userinfo, a.Claims.IDToken) {
		if !slices.Contains(rights, claimScopes[name]) {
			rights = append(rights, claimScopes[name])
		}
	}
	rights = append(rights, a.Resources...)
	if c.AccessToken == FabricToken && a.Returns(ResponseCode) {
		rights = append(rights, FabricAccess)
	}
	return rights
}

// A claimRequest describes how a request asks for one claim (OpenID Connect Core, section 5.5.1).
type claimRequest struct {
	Essential bool  `json:"essential"`
	Value     any   `json:"value"`
	Values    []any `json:"values"`
}

// among returns the strings that satisfy the claim request. ok is false if every value satisfies
// it.
func (r *claimRequest) among() (values []string, ok bool) {
	if r == nil || r.Value == nil && r.Values == nil {
		return nil, false
	}
	for _, v := range append(r.Values, r.Value) {
		if text, ok := v.(string); ok {
			values = append(values, text)
		}
	}
	return values, true
}

// parseClaims reads the claims parameter. It omits claims that are unknown or that the client may
// not have (section 5.5.1). Only two values are requirements: the value of sub, and the value of an
// essential acr.
func (rs *Requests) parseClaims(c Client, a *AuthRequest, raw string) error {
	if raw == "" {
		return nil
	}

	var asked struct {
		Userinfo map[string]*claimRequest `json:"userinfo"`
		IDToken  map[string]*claimRequest `json:"id_token"`
	}
	if err := json.Unmarshal([]byte(raw), &asked); err != nil {
		return oauth("invalid_request", "claims is not a JSON object of OpenID Connect Core, section 5.5")
	}

	for _, of := range []struct {
		asked map[string]*claimRequest
		names *[]string
	}{{asked.Userinfo, &a.Claims.Userinfo}, {asked.IDToken, &a.Claims.IDToken}} {
		for name := range of.asked {
			*of.names = append(*of.names, name)
		}
		*of.names = c.onlyClaims(*of.names)
		slices.Sort(*of.names)
		if subs, ok := of.asked["sub"].among(); ok {
			a.meanOneOf(rs.subjects, c, subs)
		}
	}

	return a.wantClaim(asked.IDToken["acr"])
}

// meanOneOf restricts the request to the subscribers that the client knows under one of the
// subjects in subs.
func (a *AuthRequest) meanOneOf(ss *Subjects, c Client, subs []string) {
	meant := []string{}
	for _, sub := range subs {
		id := ss.SubscriberOf(c, sub)
		if id != "" && (a.Meant == nil || slices.Contains(a.Meant, id)) {
			meant = append(meant, id)
		}
	}
	a.Meant = meant
}
