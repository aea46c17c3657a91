package database

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// patience is how long a start waits for another that makes the schema.
const patience = 30 * time.Second

// alone runs do while no other process does for the same file: two that start
// together must not both make its schema.
func alone(ctx context.Context, file string, do func() error) error {
	lock, err := os.OpenFile(file+"-schema-lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("locking schema: %w", err)
	}
	defer lock.Close() // which ends the lock
	for deadline := time.Now().Add(patience); ; {
		err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return do()
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) || time.Now().After(deadline) {
			return fmt.Errorf("locking schema: another selvage has been changing it for %s: %w", patience, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}
