package mail_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/selvage/selvage/internal/mail"
	"github.com/selvage/selvage/store"
	"github.com/selvage/selvage/store/storetest"
)

// An aheadStore is a store on a machine whose clock is ahead.
type aheadStore struct {
	*store.Store
	by time.Duration
}

func (s aheadStore) Clock(ctx context.Context) (time.Time, error) {
	now, err := s.Store.Clock(ctx)
	return now.Add(s.by), err
}

// A slowTransport closes begun when sending begins. Sending ends when the caller closes release.
type slowTransport struct{ begun, release chan struct{} }

func (s slowTransport) Send(context.Context, mail.Message) error {
	close(s.begun)
	<-s.release
	return nil
}

// TestLeaseByQueueClock shows that leases end by the clock of the queue, which all nodes share. If
// leases ended by the clocks of nodes, a node whose clock is ahead would send a letter again while
// another node is sending it.
func TestLeaseByQueueClock(t *testing.T) {
	rows := aheadStore{storetest.Rows(t), time.Hour}
	letter := mail.Letter{ID: uuid.NewString(), Kind: mail.Test, To: "ada@example.com", Created: time.Now()}
	if err := rows.QueueLetter(t.Context(), letter); err != nil {
		t.Fatal(err)
	}

	transport := slowTransport{make(chan struct{}), make(chan struct{})}
	p := mail.New(mail.Config{
		Queue:     rows,
		Transport: transport,
		Sender:    mail.Sender{Address: "no-reply@example.com"},
		Write: func(_ context.Context, l mail.Letter) (mail.Draft, error) {
			return mail.Draft{Kind: l.Kind, To: l.To}, nil
		},
	})
	go p.Run(t.Context())
	defer p.Shutdown(t.Context())
	defer close(transport.release)
	<-transport.begun

	leased, err := rows.FindLetter(t.Context(), letter.ID)
	if err != nil {
		t.Fatal(err)
	}
	now, err := rows.Clock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !leased.Due.After(now) {
		t.Errorf("the lease ends at %s, want a time after %s", leased.Due, now)
	}
}
