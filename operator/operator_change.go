package operator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/google/uuid"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/internal/password"
	"github.com/selvage/selvage/internal/problem"
)

// MinPassword is the minimum length of an operator's password. It is longer than the minimum for
// subscribers, because operators have more power.
const MinPassword = 12

// Input holds the fields of an operator to create or update; nil fields are left unchanged.
type Input struct {
	Email    *string // used only for a new operator
	Name     *string
	Password *string
	Disabled *bool
	Roles    []Membership
}

// CheckPassword returns an error if secret may not be the password of the operator with this email.
func CheckPassword(secret, email string) error {
	if n := utf8.RuneCountInString(norm.NFC.String(secret)); 0 < n && n < MinPassword {
		return problem.BadParam("password", "password is too short (minimum is %d characters)", MinPassword)
	}
	if err := password.Check("password", secret); err != nil {
		return err
	}
	folded := strings.ToLower(secret)
	local, _, _ := strings.Cut(strings.ToLower(email), "@")
	if len(local) > 3 && strings.Contains(folded, local) {
		return problem.BadParam("password", "password is too easy to guess: it contains your email address")
	}
	first, _ := utf8.DecodeRuneInString(folded)
	if strings.Trim(folded, string(first)) == "" {
		return problem.BadParam("password", "password is too easy to guess: it repeats one character")
	}
	return nil
}

// checkPassword is like CheckPassword, but also applies the installation's own requirements.
func (a *Operators) checkPassword(ctx context.Context, secret, email string) error {
	if err := CheckPassword(secret, email); err != nil {
		return err
	}
	return a.c.Weak(ctx, "password", secret, email)
}

// check returns everything that is wrong with an input. If isNew is set, the input describes a new
// operator.
func (a *Operators) check(ctx context.Context, in Input, isNew bool, email string) error {
	var errs []error
	if isNew {
		if in.Email == nil {
			errs = append(errs, problem.Missing("email"))
		} else {
			errs = append(errs, fabric.CheckEmail("email", *in.Email))
		}
	}
	if in.Name != nil {
		errs = append(errs, fabric.CheckPersonName("name", *in.Name))
	}
	if isNew || in.Roles != nil {
		errs = append(errs, checkRoles(in.Roles))
	}
	if in.Password != nil {
		errs = append(errs, a.checkPassword(ctx, *in.Password, email))
	}
	return errors.Join(errs...)
}

// build checks an input and returns the operator that the input describes.
func (a *Operators) build(ctx context.Context, in Input) (Operator, error) {
	email := ""
	if in.Email != nil {
		email = fabric.NormalizeEmail(*in.Email)
	}
	if err := a.check(ctx, in, true /* isNew */, email); err != nil {
		return Operator{}, err
	}

	o := Operator{ID: newID(), Email: email, Roles: in.Roles, Created: a.now()}
	o.Updated = o.Created
	if in.Name != nil {
		o.Name = *in.Name
	}
	if in.Disabled != nil {
		o.Disabled = *in.Disabled
	}
	if in.Password != nil {
		hash, err := a.c.Passwords.Hash(ctx, *in.Password)
		if err != nil {
			return Operator{}, fmt.Errorf("hashing password: %w", err)
		}
		o.PasswordHash = hash
	}
	return o, nil
}

// Create creates an operator. An operator without a password cannot sign in until one is set.
func (a *Operators) Create(ctx context.Context, in Input) (Operator, error) {
	o, err := a.build(ctx, in)
	if err != nil {
		return Operator{}, err
	}
	if err := a.c.Store.CreateOperator(ctx, o); err != nil {
		return Operator{}, fmt.Errorf("creating operator: %w", err)
	}
	return o, nil
}

// Find returns the operator with the given id or email.
func (a *Operators) Find(ctx context.Context, name string) (Operator, error) {
	if u, err := uuid.Parse(name); err == nil && len(name) == 36 {
		return a.c.Store.FindOperator(ctx, u.String())
	}
	return a.byEmail(ctx, name)
}

// List returns a page of all operators, oldest first.
func (a *Operators) List(ctx context.Context, q page.Query) (page.Page[Operator], error) {
	return a.Search(ctx, Filter{}, q)
}

// A Filter selects operators.
type Filter struct {
	Text       string // words, each of which must occur in the name, the email or the id
	OnlyTitles bool   // whether the words must occur in the text that Operator.Title returns
	Disabled   *bool  // nil means enabled and disabled operators
}

// Search returns a page of the operators that match a filter, oldest first.
func (a *Operators) Search(ctx context.Context, f Filter, q page.Query) (page.Page[Operator], error) {
	return a.c.Store.ListOperators(ctx, f, q)
}

// Update changes an operator. If it sets a password or disables the operator, it ends all the operator's
// sessions except the session with the id keep.
func (a *Operators) Update(ctx context.Context, id string, in Input, keep string) (Operator, error) {
	o, err := a.Find(ctx, id)
	if err != nil {
		return Operator{}, err
	}
	if err := a.check(ctx, in, false /* isNew */, o.Email); err != nil {
		return Operator{}, err
	}

	c := Change{Name: in.Name, Disabled: in.Disabled, Roles: in.Roles}
	if in.Password != nil {
		hash, err := a.c.Passwords.Hash(ctx, *in.Password)
		if err != nil {
			return Operator{}, fmt.Errorf("hashing password: %w", err)
		}
		c.PasswordHash = &hash
	}
	return a.c.Store.UpdateOperator(ctx, o.ID, c, a.now(), keep)
}

// Delete deletes an operator and the operator's sessions.
func (a *Operators) Delete(ctx context.Context, id string) error {
	o, err := a.Find(ctx, id)
	if err != nil {
		return err
	}
	return a.c.Store.DeleteOperator(ctx, o.ID)
}
