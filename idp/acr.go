package idp

import (
	"context"
	"slices"

	"github.com/selvage/selvage/internal/problem"
)

// The authentication context classes (OpenID Connect Core, section 2), after the levels
// of ISO/IEC 29115. One factor is a password, or a key that anybody may have used whose
// device it is. Two are a password and a code or a passkey, or a passkey alone, whose
// device has verified who uses it.
const (
	acrOne = "1"
	acrTwo = "2"
)

// ACRValues lists the authentication context classes that a login may have.
func ACRValues() []string { return []string{acrOne, acrTwo} }

// acrOf returns the authentication context class of a login that was proven so, or "".
func acrOf(amr []string) string {
	switch {
	case slices.Contains(amr, "mfa"):
		return acrTwo
	case slices.Contains(amr, "pwd") || slices.Contains(amr, "pop"):
		return acrOne
	}
	return ""
}

// TwoFactors reports whether the login was proven by two factors.
func (s Login) TwoFactors() bool { return acrOf(s.AMR) == acrTwo }

// A Want is what a request wants of the authentication context class.
type Want string

// What may be wanted, beside nothing in particular.
const (
	WantTwo   Want = "two"    // two factors
	PreferTwo Want = "prefer" // two, where the subscriber has them
)

// wantACR reads the values that are asked for, the best first (OpenID Connect Core,
// section 3.1.2.1). Those that are unknown say nothing.
func (a *AuthRequest) wantACR(values []string) {
	known := slices.DeleteFunc(slices.Clone(values), func(v string) bool { return !slices.Contains(ACRValues(), v) })
	switch {
	case len(known) == 0 || known[0] != acrTwo:
	case slices.Contains(known, acrOne):
		a.Want = PreferTwo
	default:
		a.Want = WantTwo
	}
}

// wantClaim reads the claim acr of the parameter claims (section 5.5.1.1). One that is
// essential must be met, to the letter.
func (a *AuthRequest) wantClaim(acr *claimRequest) error {
	values, ok := acr.among()
	if !ok {
		return nil
	}
	before := a.Want
	a.wantACR(values)
	if !acr.Essential {
		if a.Want == WantTwo && before != WantTwo {
			a.Want = PreferTwo // it is wished for (section 5.5.1)
		}
		return nil
	}
	one, two := slices.Contains(values, acrOne), slices.Contains(values, acrTwo)
	switch {
	case !one && !two:
		return oauth("unmet_authentication_requirements",
			"nobody can log in here in the way that the claim acr demands")
	case !two:
		a.Claims.ACR = acrOne // two factors prove what one does
	}
	return nil
}

// Need says what a request needs of a login: what it wants itself, its client always,
// or everybody's login in the project.
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

// checkACR checks a client's own demand.
func (c Client) checkACR() error {
	if c.RequireACR != "" && !slices.Contains(ACRValues(), c.RequireACR) {
		return problem.BadParam("acr", "acr must be 1 or 2, or any")
	}
	return nil
}
