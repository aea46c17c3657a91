package fabric

import (
	"context"
	"time"

	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/internal/problem"
)

// An Invitation lets a subscriber choose a first password. It is pending until the subscriber has
// accepted it.
type Invitation struct {
	Inviter string // "" means the project
	To      string // address to which it is mailed; "" if an operator hands its link over
	Created time.Time
	Expires time.Time // zero while no link exists, because the letter has not been sent yet

	Letter mail.State // state of the letter; "" without a letter
	Error  string     // why the letter could not be sent
}

// Invite sends a subscriber a link for setting a first password. The letter names the inviter or, if
// inviter is "", the project. Invite returns an error if the subscriber has a password, has no
// email, or is disabled.
func (ss *Subscribers) Invite(ctx context.Context, projectID, id, inviter string) (Subscriber, error) {
	s, err := ss.FindInvitable(ctx, projectID, id, inviter)
	if err != nil {
		return s, err
	}
	facts := map[string]string{}
	if inviter != "" {
		facts["inviter"] = inviter
	}

	return s, ss.store.QueueLetter(ctx, mail.Letter{
		ID: newID(), ProjectID: s.ProjectID, SubscriberID: s.ID, Kind: mail.Invitation, To: s.Email,
		Facts: facts, Created: ss.now(),
	})
}

// FindInvitable returns a subscriber whom the inviter may invite. The errors are those of Invite.
func (ss *Subscribers) FindInvitable(ctx context.Context, projectID, id, inviter string) (Subscriber, error) {
	s, err := ss.Find(ctx, projectID, id)
	if err != nil {
		return s, err
	}
	if err := CheckPersonName("inviter", inviter); err != nil {
		return s, err
	}

	switch {
	case s.Email == "":
		return s, problem.BadParam("email", "email is missing; the invitation needs an address")
	case s.PasswordHash != "":
		return s, problem.BadParam("password", "subscribers with a password are not invited")
	case s.Disabled:
		return s, problem.BadParam("disabled", "disabled subscribers are not invited")
	}
	return s, nil
}

// FindInvitation returns a subscriber's pending invitation, which may have expired.
func (ss *Subscribers) FindInvitation(ctx context.Context, projectID, id string) (Invitation, error) {
	s, err := ss.Find(ctx, projectID, id)
	if err != nil {
		return Invitation{}, err
	}
	return ss.store.FindInvitationOf(ctx, s.ID)
}

// CodeNoInvitation is the code of the error that no invitation is pending.
const CodeNoInvitation = "no_invitation"

// WithdrawInvitation ends a subscriber's pending invitations, so that their links stop working. If
// no invitation is pending, for example because it was just accepted, it returns problem.Conflict
// with the code CodeNoInvitation.
func (ss *Subscribers) WithdrawInvitation(ctx context.Context, projectID, id string) error {
	s, err := ss.Find(ctx, projectID, id)
	if err != nil {
		return err
	}
	return ss.store.WithdrawInvitationOf(ctx, s.ProjectID, s.ID)
}
