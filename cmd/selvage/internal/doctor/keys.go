package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/selvage/selvage/keys"
	"github.com/selvage/selvage/store"
)

func (e *Examination) keyChecks() []check {
	return []check{{"Keys", "ring", e.ring}}
}

// ring checks the master key and the key ring that it decrypts.
func (e *Examination) ring(ctx context.Context) []Finding {
	return e.overRows(ctx, func(s *store.Store) []Finding {
		records, err := s.RingKeys(ctx)
		if err != nil {
			return []Finding{skippedf("%s", plainly(err))}
		}
		master, told := e.master(len(records) > 0)
		if master == nil {
			return []Finding{told.of("master key")}
		}
		r, err := keys.Read(ctx, e.Config.RingConfig(s, master))
		if err != nil {
			return []Finding{told.of("master key"), skippedf("%s", plainly(err))}
		}
		return append([]Finding{told.of("master key")}, e.ringKeys(r.Status(), records)...)
	})
}

// master reads the master key. The returned key is nil if the master key is missing or unusable. If
// needed is set, the finding for a missing master key is an error.
func (e *Examination) master(needed bool) ([]byte, Finding) {
	if e.Config.MasterKey != "" {
		key, err := keys.ParseMaster(string(e.Config.MasterKey))
		if err != nil {
			return nil, brokenf("set the correct key", "%v", err)
		}
		return key, finef("from %s", place.ReplaceAllString(e.From["master_key"], ""))
	}

	file := e.Config.MasterFile()
	switch _, err := os.Stat(file); {
	case errors.Is(err, fs.ErrNotExist) && needed:
		return nil, brokenf(
			e.Config.MasterKeyAdvice()+", or set SELVAGE_MASTER_KEY_FILE to a file that contains it",
			"%s is missing; the key ring is encrypted with it", file)
	case err != nil:
		return nil, skippedf("missing; the first start creates it")
	}

	key, err := keys.ReadMaster(file)
	if err != nil {
		found, remedy, _ := strings.Cut(err.Error(), "; ")
		return nil, brokenf(remedy, "%s", found)
	}
	return key, finef("%s; keep a copy elsewhere", absolute(file))
}

// ringKeys checks the ring for keys that are missing, cannot be decrypted, or are overdue for
// rotation.
func (e *Examination) ringKeys(status keys.Status, records []keys.Record) (all []Finding) {
	if errors.Is(status.Err, keys.ErrMaster) {
		return []Finding{brokenf(
			e.Config.MasterKeyAdvice()+", or set SELVAGE_MASTER_KEY_FILE to a file that contains the correct key",
			"the key ring is encrypted with another master key")}
	}

	if status.Err != nil {
		all = append(all, brokenf("check where these keys are stored", "%v", status.Err))
	}

	var missing, overdue []string
	for _, use := range keys.Uses() {
		for _, state := range []keys.State{keys.Current, keys.Next} {
			if !hasKey(records, use, state) {
				missing = append(missing, fmt.Sprintf("%s %s", state, use))
			}
		}
		period := time.Duration(e.Config.Keys.SigningRotation)
		if use == keys.Seal {
			period = time.Duration(e.Config.Keys.SealingRotation)
		}
		// A tenth of the period, or at least an hour, is allowed before a rotation is overdue.
		if since, ok := status.Since[use]; ok && time.Since(since) > period+max(period/10, time.Hour) {
			overdue = append(overdue, fmt.Sprintf("%s since %s", use, stamp(since)))
		}
	}

	const start = "start the server, which does this"
	remedy := map[bool]string{false: start, true: "check the server's log for \"maintaining the key ring\""}[e.alive]
	if missing != nil && len(records) > 0 {
		all = append(all, warnedf(remedy, "missing keys: %s", strings.Join(missing, ", ")).of("missing"))
	}
	if overdue != nil {
		all = append(all, warnedf(remedy, "overdue: %s", strings.Join(overdue, ", ")).of("rotation"))
	}
	if all == nil {
		all = append(all, finef("%s, decrypted with the master key", plural(len(records), "key")))
	}

	return all
}

func hasKey(records []keys.Record, use keys.Use, state keys.State) bool {
	for _, r := range records {
		if r.Use == use && r.State == state {
			return true
		}
	}
	return false
}
