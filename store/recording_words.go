package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/selvage/selvage/internal/audit"
	"github.com/selvage/selvage/internal/problem"
	"github.com/selvage/selvage/recordings"
)

// wordsOf returns the words of a recording as its row stores them: each between two spaces.
func wordsOf(m recordings.Metadata) string { return " " + strings.Join(append(m.Words(), ""), " ") }

// addWords writes the index rows that find a recording by its words.
func (t recordingTx) addWords(ctx context.Context, projectID, id string, words []string) error {
	if len(words) == 0 {
		return nil
	}
	args := []any{projectID, id}
	rows := make([]string, len(words))
	for i, word := range words {
		args = append(args, word)
		rows[i] = fmt.Sprintf("($1, $%d, $2)", len(args))
	}

	err := t.Later(ctx, `INSERT INTO recording_words (project, word, recording_id) VALUES `+strings.Join(rows, ", "),
		args...)
	if err != nil {
		return fmt.Errorf("adding words: %w", err)
	}
	return nil
}

// replaceWords replaces the words of a recording, which may already have some.
func (t recordingTx) replaceWords(ctx context.Context, r recordings.Recording) error {
	err := t.Later(ctx, `UPDATE recordings SET words = $2 WHERE id = $1`, r.ID, wordsOf(r.Metadata))
	if err != nil {
		return fmt.Errorf("writing words: %w", err)
	}
	return t.indexWords(ctx, r)
}

// indexWords replaces the index rows of a recording.
func (t recordingTx) indexWords(ctx context.Context, r recordings.Recording) error {
	if err := t.Later(ctx, `DELETE FROM recording_words WHERE recording_id = $1`, r.ID); err != nil {
		return fmt.Errorf("removing words: %w", err)
	}
	return t.addWords(ctx, r.ProjectID, r.ID, r.Metadata.Words())
}

// indexBatch is the maximum number of recordings that IndexRecordings updates in one transaction.
const indexBatch = 200

// IndexRecordings writes the tails and the words of recordings that were stored before these columns
// existed, or that an erasure has anonymized. It updates few recordings per transaction, so that
// other changes do not wait long.
func (s *Recordings) IndexRecordings(ctx context.Context) error {
	for {
		unindexed, err := recordingTable.gather(ctx, s.read(), `WHERE words IS NULL ORDER BY id LIMIT $1`, indexBatch)
		if err != nil {
			return err
		}
		if len(unindexed) == 0 {
			return nil
		}

		err = s.change(ctx, audit.None("the index of numbers and names"), func(t tx) error {
			for _, r := range unindexed {
				res, err := t.Exec(ctx, `UPDATE recordings SET from_tail = $2, to_tail = $3, words = $4
					WHERE id = $1 AND from_address = $5 AND to_address = $6 AND name = $7 AND words IS NULL`,
					r.ID, recordings.Tail(r.From), recordings.Tail(r.To), wordsOf(r.Metadata), r.From, r.To, r.Name)
				n, err := countChanged(res, err, "recording")
				if err != nil {
					return err
				}
				if n == 0 { // another node was faster
					continue
				}
				if err := t.recordings().indexWords(ctx, r); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
}

// Limits on a search by words.
const (
	maxSearched = 8    // maximum number of words in one search
	fewWords    = 2000 // maximum number of index entries that a search reads and sorts
)

// A wordSearch describes how a listing finds recordings by words.
type wordSearch struct {
	begins []string // beginnings of words, the rarest first
	few    bool     // whether few recordings have a word with the first beginning
	whole  bool     // whether only one word has the first beginning
}

// wordsFor returns the search for recordings by the name in a filter.
func (s *Recordings) wordsFor(ctx context.Context, f recordings.Filter) (ws wordSearch, err error) {
	if f.Name == "" {
		return ws, nil
	}
	ws.begins = recordings.Words(f.Name)
	if n := len(ws.begins); n == 0 || n > maxSearched {
		return ws, problem.BadParam("Name", "Name must contain 1 to %d words of letters and digits", maxSearched)
	}

	least := fewWords + 1
	for i, begin := range ws.begins {
		var n int
		err := s.read().Row(ctx, `SELECT COUNT(*) FROM (SELECT 1 FROM recording_words
				WHERE project = $1 AND word >= $2 AND word < $3 LIMIT $4) AS entries`,
			f.ProjectID, begin, begin+last, fewWords+1).Scan(&n)
		if err != nil {
			return ws, fmt.Errorf("counting words: %w", err)
		}
		if n < least {
			least = n
			ws.few = true
			ws.begins[0], ws.begins[i] = ws.begins[i], ws.begins[0]
		}
	}

	if ws.few {
		return ws, nil
	}

	var first, final string // first and last word with the first beginning
	const in = `FROM recording_words WHERE project = $1 AND word >= $2 AND word < $3`
	err = s.read().Row(ctx, // each of these reads one index entry
		`SELECT COALESCE((SELECT MIN(word) `+in+`), ''), COALESCE((SELECT MAX(word) `+in+`), '')`,
		f.ProjectID, ws.begins[0], ws.begins[0]+last).Scan(&first, &final)
	if err != nil {
		return ws, fmt.Errorf("finding words: %w", err)
	}
	ws.whole = first == final
	if ws.whole {
		ws.begins[0] = first
	}
	return ws, nil
}

// few reports whether a filter has an indexed condition that leaves few recordings.
func few(f recordings.Filter) bool {
	return f.Party != "" || f.CallSid != "" || f.ConferenceSid != ""
}

// drives reports whether a listing finds recordings by the index entries of the first beginning. This is
// the case if few recordings have a word with it, or if only one word has it and the filter has no other
// condition. If the filter contains the beginning of a call's id, or a condition that leaves few
// recordings, the listing finds recordings by that condition instead.
func (ws wordSearch) drives(f recordings.Filter) bool {
	plain := f.Tag == "" && f.SubscriberID == "" && f.Flag == 0 && f.Direction == "" && !f.Held
	return len(ws.begins) > 0 && f.CallBegins == "" && !few(f) && (ws.few || ws.whole && plain)
}

// maxWordsChecked is maxChecked for searches by words. These searches read each row of recordings
// to check it, often not in the order of the table.
const maxWordsChecked = 500

// byWords restricts a listing to recordings with the words. If drives returns true, the listing
// reads the recordings with the first word, and checks them for the other words. Otherwise it reads
// the recordings that the other conditions find, and checks them for all words.
func (ws wordSearch) byWords(l listing[recordings.Recording], f recordings.Filter) listing[recordings.Recording] {
	others := ws.begins
	if ws.drives(f) {
		others = others[1:]
		l.key = []string{"recording_id"}
		l.where.always(`id = recording_id`)
		switch begin := ws.begins[0]; {
		case ws.few:
			n := len(l.where.args)
			l.where.args = append(l.where.args, f.ProjectID, begin, begin+last)
			l.from = fmt.Sprintf(`(SELECT DISTINCT recording_id FROM recording_words
				WHERE project = $%d AND word >= $%d AND word < $%d) AS named CROSS JOIN recordings`, n+1, n+2, n+3)
		default:
			l.from = "recording_words CROSS JOIN recordings"
			l.where.and(`project = $%d`, f.ProjectID)
			l.where.and(`word = $%d`, begin)
		}
	}

	for _, begin := range others {
		c := check{`words LIKE $%d`, []any{"% " + begin + "%"}}
		if few(f) && f.CallBegins == "" || ws.drives(f) && ws.few {
			l.where.check(c)
			continue
		}
		l.checks = append(l.checks, c)
	}
	if len(ws.begins) > 0 {
		l.checked = maxWordsChecked
	}
	return l
}
