package turn

import (
	"context"
	"time"
)

// WaitForProof sets how long a connection may go without an allocation.
func (s *Server) WaitForProof(d time.Duration) { s.proof.Store(int64(d)) }

// Credentials returns the name and password of a holder.
func (s *Server) Credentials(holder string, expires time.Time) (username, password string) {
	return s.credentials(holder, expires)
}

// Update checks the server as Watch does every minute.
func (s *Server) Update(ctx context.Context) { s.update(ctx, true) }

// MaxPerHolder is the most allocations of one holder.
const MaxPerHolder = maxPerHolder
