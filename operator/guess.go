package operator

import (
	"context"
	"errors"
	"strings"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/limit"
	"github.com/selvage/selvage/internal/problem"
)

// count counts a try before the password is looked at, so that tries at once count too.
// Known and unknown accounts are counted alike, by how an e-mail is compared, and each
// network by itself: who guesses from elsewhere locks no operator out.
func (a *Operators) count(ctx context.Context, email, network string) error {
	if err := a.c.Limits.Take(ctx, limit.LoginPerNetwork, "operator\n"+network); err != nil {
		return err
	}
	return a.c.Limits.Take(ctx, limit.LoginPerAccount, guesser(email, network))
}

func guesser(email, network string) string {
	return strings.Join([]string{"operator", fabric.NormalizeEmail(email), network}, "\n")
}

// forgive forgets the tries of who has found the password from there.
func (a *Operators) forgive(ctx context.Context, email, network string) {
	_ = a.c.Limits.Reset(ctx, limit.LoginPerAccount, guesser(email, network)) // they are forgotten in time
	a.c.Limits.Return(ctx, limit.LoginPerNetwork, "operator\n"+network)
}

// Prove checks the password of an operator who is signed in, as one of its tries.
func (a *Operators) Prove(ctx context.Context, o Operator, secret, network string) error {
	if err := a.count(ctx, o.Email, network); err != nil {
		return err
	}
	ok, err := a.c.Passwords.Verify(ctx, o.PasswordHash, secret)
	if err == nil && !ok {
		err = problem.New(problem.Unauthenticated, "wrong_credentials", "The password is wrong.")
	}
	if err == nil {
		a.forgive(ctx, o.Email, network)
	}
	return err
}

// SetPassword changes the password of an operator who knows the one before. All its
// sessions end but keep.
func (a *Operators) SetPassword(ctx context.Context, o Operator, before, secret, network, keep string) error {
	err := a.Prove(ctx, o, before, network)
	if errors.Is(err, problem.Unauthenticated) {
		return problem.BadParam("current", "the password you have now is wrong")
	}
	if err != nil {
		return err
	}
	_, err = a.Update(ctx, o.ID, Input{Password: &secret}, keep)
	return err
}
