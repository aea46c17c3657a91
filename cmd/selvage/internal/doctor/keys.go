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

// ring checks the master key, and the key ring that is encrypted with it.
func (e *Examination) ring(ctx context.Context) []Finding {
	return e.overRows(ctx, func(s *store.Store) []Finding {
		records, err := s.RingKeys(ctx)
		if err != nil {
			return []Finding{skippedf("%s", plainly(err))}
		}
		master, finding := e.master(len(records) > 0)
		if master == nil {
			return []Finding{finding.of("master key")}
		}
		r, err := keys.Read(ctx, e.Config.RingConfig(s, master))
		if err != nil {
			return []Finding{finding.of("master key"), skippedf("%s", plainly(err))}
		}
		return append([]Finding{finding.of("master key")}, e.ringKeys(r.Status(), records)...)
	})
}

// master reads the master key. The returned key is nil if the master key is missing or unusable. needed
// means that a missing master key is an error.
func (e *Examination) master(needed bool) ([]byte, Finding) {
	if e.Config.MasterKey != "" {
		key, err := keys.ParseMaster(string(e.Config.MasterKey))
		if err != nil {
			return nil, brokenf("%s", err).withRemedy("set the correct key")
		}
		return key, finef("from %s", place.ReplaceAllString(e.From["master_key"], ""))
	}

	file := e.Config.MasterFile()
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		if needed {
			return nil, brokenf("%s is missing; the key ring is encrypted with it", file).withRemedy(e.masterRemedy())
		}
		return nil, skippedf("missing; the first start creates it")
	}

	key, err := keys.ReadMaster(file)
	if err != nil {
		found, remedy, _ := strings.Cut(err.Error(), "; ")
		return nil, brokenf("%s", found).withRemedy(Text(remedy))
	}
	return key, finef("%s; keep a copy elsewhere", absolute(file))
}

// masterRemedy returns the remedy for a master key that is missing or wrong.
func (e *Examination) masterRemedy() Text {
	if e.Config.Database.Shared() {
		return textf("copy the key from a node that uses the same database, " +
			"or set SELVAGE_MASTER_KEY_FILE to a file that contains it")
	}
	return textf("restore the key from your backup, or set SELVAGE_MASTER_KEY_FILE to a file that contains it")
}

// ringKeys checks the ring for keys that are missing, cannot be decrypted, or are overdue for
// rotation.
func (e *Examination) ringKeys(status keys.Status, records []keys.Record) (all []Finding) {
	if errors.Is(status.Err, keys.ErrMaster) {
		return []Finding{brokenf("the key ring is encrypted with a different master key").withRemedy(e.masterRemedy())}
	}

	if status.Err != nil {
		all = append(all, brokenf("%s", status.Err).withRemedy("check where these keys are stored"))
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
		// A rotation may be late by a tenth of the period, or by an hour if that is longer.
		allowed := period + max(period/10, time.Hour)
		if since, ok := status.Since[use]; ok && time.Since(since) > allowed {
			overdue = append(overdue, fmt.Sprintf("%s (%s)", use, stamp(since)))
		}
	}

	remedy := textf("start the server, which does this")
	if e.alive {
		remedy = textf("check the server's log for \"maintaining the key ring\"")
	}
	if missing != nil && len(records) > 0 {
		all = append(all, warnedf("missing keys: %s", strings.Join(missing, ", ")).withRemedy(remedy).of("missing"))
	}
	if overdue != nil {
		all = append(all, warnedf("overdue since: %s", strings.Join(overdue, ", ")).withRemedy(remedy).of("rotation"))
	}
	if all == nil {
		all = append(all, finef("%s keys, decrypted with the master key", len(records)))
	}
	return all
}

// hasKey reports whether the ring has a key with a use and a state.
func hasKey(records []keys.Record, use keys.Use, state keys.State) bool {
	for _, r := range records {
		if r.Use == use && r.State == state {
			return true
		}
	}
	return false
}
