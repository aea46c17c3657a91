package idp

import (
	"context"
	"slices"

	"github.com/selvage/selvage/internal/problem"
)

// The authentication context classes (OpenID Connect Core, section 2) have the names of levels in
// ISO/IEC 29115. One factor is a password, or a passkey whose device did not verify its user. Two
// factors are a password with a code or a passkey, or a passkey whose device verified its user.
const (
	acrOne = "1"
	acrTwo = "2"
)

// ACRValues returns the authentication context classes that a login may have.
func ACRValues() []string { return []string{acrOne, acrTwo} }

// acrOf returns the authentication context class of a login with this AMR, or "" if it has none.
func acrOf(amr []string) string {
	switch {
	case slices.Contains(amr, "mfa"):
		return acrTwo
	case slices.Contains(amr, "pwd") || slices.Contains(amr, "pop"):
		return acrOne
	}
	return ""
}

// TwoFactors reports whether the login used two factors.
func (s Login) TwoFactors() bool { return acrOf(s.AMR) == acrTwo }

// A Want is the authentication context class that a request asks for.
type Want string

// These are the values of Want. The zero value accepts any login.
const (
	WantTwo   Want = "two"    // two factors
	PreferTwo Want = "prefer" // two factors if the subscriber has them
)

// wantACR sets a.Want from the requested classes, the preferred one first (OpenID Connect Core,
// section 3.1.2.1). Unknown classes are ignored.
func (a *AuthRequest) wantACR(values []string) {
	isUnknown := func(class string) bool { return !slices.Contains(ACRValues(), class) }
	known := slices.DeleteFunc(slices.Clone(values), isUnknown)
	switch {
	case len(known) == 0 || known[0] != acrTwo:
	case slices.Contains(known, acrOne):
		a.Want = PreferTwo
	default:
		a.Want = WantTwo
	}
}

// wantClaim applies the acr member of the claims parameter (section 5.5.1.1). If it is essential,
// the login must have one of its values.
func (a *AuthRequest) wantClaim(acr *claimRequest) error {
	values, ok := acr.among()
	if !ok {
		return nil
	}

	before := a.Want
	a.wantACR(values)
	if !acr.Essential {
		if a.Want == WantTwo && before != WantTwo {
			a.Want = PreferTwo // only a preference (section 5.5.1)
		}
		return nil
	}

	one, two := slices.Contains(values, acrOne), slices.Contains(values, acrTwo)
	switch {
	case !one && !two:
		return errUnmet
	case !two:
		a.Claims.ACR = acrOne // a login with two factors also satisfies a request for one
	}
	a.NeedsClass = true
	return nil
}

// errUnmet is the error for an essential acr that the login cannot have (OpenID Connect Core Unmet
// Authentication Requirements 1.0).
var errUnmet = oauth("unmet_authentication_requirements",
	"the authentication that the claim acr requires is not available")

// CheckClass returns an error if the request requires an acr, but the login has none, because only
// an upstream provider has authenticated the person.
func (a AuthRequest) CheckClass(s Login) error {
	if a.NeedsClass && acrOf(s.AMR) == "" {
		return errUnmet
	}
	return nil
}

// Need returns the class of login that a request needs. It is the strictest of the classes that the
// request, its client and its project require.
func (rs *Requests) Need(ctx context.Context, c Client, a AuthRequest) (Want, error) {
	if a.Want == WantTwo || c.RequireACR == acrTwo {
		return WantTwo, nil
	}
	project, err := rs.project(ctx, c.ProjectID)
	if err != nil {
		return "", err
	}
	if project.RequireFactor {
		return WantTwo, nil
	}
	return a.Want, nil
}

// checkACR returns an error if the client's settings require an unknown class.
func (c Client) checkACR() error {
	if c.RequireACR != "" && !slices.Contains(ACRValues(), c.RequireACR) {
		return problem.BadParam("acr", "acr must be 1, 2 or any")
	}
	return nil
}
