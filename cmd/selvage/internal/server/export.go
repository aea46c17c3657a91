package server

import (
	"context"
	"errors"
	"time"

	"github.com/selvage/selvage/calls"
	"github.com/selvage/selvage/chat"
	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/factor"
	"github.com/selvage/selvage/internal/page"
	"github.com/selvage/selvage/recordings"
)

// export adds the data that package fabric does not have: recordings, calls, messages and second
// factors.
func (a *App) export(ctx context.Context, e *fabric.Export) error {
	owner := recordings.Owner{ProjectID: e.Subscriber.ProjectID, SubscriberID: e.Subscriber.ID}
	found, err := page.Every(ctx, func(ctx context.Context, q page.Query) (page.Page[recordings.Recording], error) {
		return a.Store.ListRecordings(ctx, recordings.Filter{Owner: owner}, q)
	})
	if err != nil {
		return err
	}

	for _, r := range found {
		e.Recordings = append(e.Recordings, fabric.ExportedRecording{
			Sid:           r.Sid,
			CallSid:       r.CallSid,
			ConferenceSid: r.ConferenceSid,
			From:          r.From,
			To:            r.To,
			Direction:     r.Direction,
			Track:         r.Track,
			Status:        string(r.Status),
			Duration:      r.Duration().Seconds(),
			Codec:         r.Codec,
			Bytes:         r.Bytes,
			SHA256:        r.SHA256,
			StartTime:     fabric.Known(r.StartTime),
			CreatedAt:     r.Created,
		})
	}

	if err := errors.Join(a.exportCalls(ctx, e), a.exportMessages(ctx, e)); err != nil {
		return err
	}
	return a.exportFactors(ctx, e)
}

// exportFactors adds the second factors of the subscriber.
func (a *App) exportFactors(ctx context.Context, e *fabric.Export) error {
	who := factor.Owner{Kind: factor.Subscriber, ID: e.Subscriber.ID}
	passkeys, err := a.Store.ListPasskeys(ctx, who)
	if err != nil {
		return err
	}
	for _, k := range passkeys {
		e.Passkeys = append(e.Passkeys, fabric.ExportedPasskey{
			ID:        k.ID,
			Name:      k.Name,
			CreatedAt: k.Created,
			UsedAt:    fabric.Known(k.Used),
		})
	}

	set, err := a.Store.HasFactors(ctx, who)
	if err != nil {
		return err
	}
	codes, err := a.Store.FindRecoveryCodes(ctx, who)
	if err != nil {
		return err
	}
	e.Authenticator = set.TOTP
	e.RecoveryCodes = codes.Left
	return nil
}

// exportCalls adds the calls that the subscriber made or received.
func (a *App) exportCalls(ctx context.Context, e *fabric.Export) error {
	filter := calls.Filter{Subscribers: []string{e.Subscriber.ID}}
	found, err := page.Every(ctx, func(ctx context.Context, q page.Query) (page.Page[calls.Record], error) {
		return a.CallRecords.List(ctx, e.Subscriber.ProjectID, filter, q)
	})
	if err != nil {
		return err
	}

	for _, r := range found {
		e.Calls = append(e.Calls, fabric.ExportedCall{
			ID:           r.ID,
			From:         r.From.Address,
			FromName:     r.From.Name,
			To:           r.To.Address,
			ToName:       r.To.Name,
			State:        string(r.State),
			Cause:        r.Cause.Text,
			Video:        r.Video,
			RecordingSid: r.RecordingSid,
			Duration:     int64(r.Duration(time.Now()).Round(time.Second).Seconds()),
			CreatedAt:    r.Created,
			AnsweredAt:   fabric.Known(r.Answered),
			EndedAt:      fabric.Known(r.Ended),
		})
	}
	return nil
}

// exportMessages adds the messages that the subscriber sent or received.
func (a *App) exportMessages(ctx context.Context, e *fabric.Export) error {
	found, err := page.Every(ctx, func(ctx context.Context, q page.Query) (page.Page[chat.Message], error) {
		return a.Store.ExportMessages(ctx, e.Subscriber.ProjectID, e.Subscriber.ID, q)
	})
	if err != nil {
		return err
	}
	for _, m := range found {
		e.Messages = append(e.Messages, fabric.ExportedMessage{
			ID:            m.ID,
			FromAddressID: m.From.AddressID,
			FromName:      m.From.Name,
			ToAddressID:   m.To.AddressID,
			Text:          m.Text,
			CreatedAt:     m.Created,
		})
	}
	return nil
}

// erased deletes the logins and the media of an erased subscriber. If this process has not opened
// the media, a later sweep of the server deletes the media.
func (a *App) erased(ctx context.Context, e fabric.Erasure) error {
	err := a.IDP.Logins.Forget(ctx, e.Sessions...)
	if a.Recordings != nil {
		err = errors.Join(err, a.Recordings.Forget(ctx, e.Media...))
	}
	return err
}
