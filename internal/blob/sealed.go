package blob

import (
	"bytes"
	"context"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"github.com/minio/sio"

	"github.com/selvage/selvage/internal/problem"
)

// Sealed is a [Store] that encrypts blobs before another Store keeps them. Each blob is encrypted
// with its own key, in pieces of 64 KiB (AES-256-GCM in the format DARE 2.0), so that any range can be
// decrypted and authenticated without the rest. The order of the pieces and the end of the blob are
// authenticated, too.
//
// A sealed blob begins with sealedMark, the fingerprint of the secret, and a salt. The blob's key
// is derived from the secret, the salt and the blob's name, so that a blob cannot be read under the name of
// another. A blob without the mark was stored while sealing was off, and is returned as it is.
type Sealed struct {
	Store
	seals   bool                       // whether new blobs are sealed
	secrets func() [][sha256.Size]byte // the first one seals new blobs
}

// sealedMark is at the beginning of a sealed blob.
const sealedMark = "\x89selvage sealed\n"

// Sizes of the parts of a sealed blob.
const (
	fingerprintSize = 16
	saltSize        = 32
	headSize        = len(sealedMark) + fingerprintSize + saltSize
	sealedPiece     = 64 << 10 // bytes of the blob in each piece (DARE 2.0)
	sealedOverhead  = 32       // bytes that encryption adds to each piece
)

// NewSealed returns a store that reads sealed blobs and, if seals is set, seals new ones. secrets
// returns the secrets; the first one seals new blobs.
func NewSealed(s Store, seals bool, secrets func() [][sha256.Size]byte) *Sealed {
	return &Sealed{Store: s, seals: seals, secrets: secrets}
}

// Put implements [Store].
func (s *Sealed) Put(
	key string,
	write func(f File) (parts map[string][]byte, err error),
	commit func() (keep bool, err error),
) error {
	return s.Store.Put(key, func(f File) (map[string][]byte, error) {
		if !s.seals {
			return writeUnsealed(f, write)
		}
		return s.writeSealed(key, f, write)
	}, commit)
}

// writeUnsealed passes a file to write. It refuses content that looks like a sealed blob.
func writeUnsealed(f File, write func(File) (map[string][]byte, error)) (map[string][]byte, error) {
	parts, writeErr := write(f)
	if err := errors.Join(writeErr, refuseMark(f)); err != nil {
		return nil, err
	}
	return parts, nil
}

// writeSealed calls write with a File that seals what is written to it, and seals the parts that write
// returns.
func (s *Sealed) writeSealed(
	key string, f File, write func(File) (map[string][]byte, error),
) (map[string][]byte, error) {
	w, err := s.seal(key, f)
	if err != nil {
		return nil, err
	}
	parts, writeErr := write(w)
	if err := errors.Join(writeErr, w.finish()); err != nil {
		return nil, err
	}

	for part, content := range parts {
		sealed, err := s.sealPart(key+partMark+part, content)
		if err != nil {
			return nil, err
		}
		parts[part] = sealed
	}
	return parts, nil
}

// refuseMark rejects a file that would later be mistaken for a sealed blob.
func refuseMark(f io.ReaderAt) error {
	mark := make([]byte, len(sealedMark))
	if n, err := f.ReadAt(mark, 0); n < len(mark) || err != nil {
		return nil // no mark: the file is shorter, or cannot be read
	}
	if string(mark) == sealedMark {
		return problem.New(problem.Unsupported, "unsupported_media_type", "the upload is not audio")
	}
	return nil
}

// Open implements [Store].
func (s *Sealed) Open(key string) (io.ReadSeekCloser, error) {
	f, err := s.Store.Open(key)
	if err != nil {
		return nil, err
	}
	file, ok := f.(readable)
	if !ok {
		return nil, errors.Join(fmt.Errorf("opening blob: %T does not support random access", f), f.Close())
	}
	open, err := s.open(key, file)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening blob: %w", err), f.Close())
	}
	return open, nil
}

// readable is implemented by the open blobs of all stores.
type readable interface {
	io.ReadSeekCloser
	io.ReaderAt
}

// ReadPart implements [Store].
func (s *Sealed) ReadPart(key, part string) ([]byte, error) {
	content, err := s.Store.ReadPart(key, part)
	if err != nil {
		return nil, err
	}
	f, err := s.open(key+partMark+part, inMemory{bytes.NewReader(content)})
	if err != nil {
		return nil, fmt.Errorf("reading part of blob: %w", err)
	}
	defer f.Close()
	return io.ReadAll(f)
}

// inMemory is an open blob in memory.
type inMemory struct{ *bytes.Reader }

func (inMemory) Close() error { return nil }

// Restore implements [Store].
func (s *Sealed) Restore(key, part string, write func(w io.Writer) error) error {
	if !s.seals {
		return s.Store.Restore(key, part, write)
	}
	name := key
	if part != "" {
		name += partMark + part
	}
	return s.Store.Restore(key, part, func(to io.Writer) error {
		w, err := s.encrypt(name, to)
		if err != nil {
			return err
		}
		return errors.Join(write(w), w.Close())
	})
}

// Sweep implements [Store].
func (s *Sealed) Sweep(ctx context.Context, inUse InUse) error { return s.Store.Sweep(ctx, inUse) }

// open returns the content of a stored file. name is the key of the blob or, for a part, the key, partMark
// and the name of the part.
func (s *Sealed) open(name string, f readable) (readable, error) {
	head := make([]byte, headSize)
	n, err := f.ReadAt(head, 0)
	if n < headSize && err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if n < headSize || string(head[:len(sealedMark)]) != sealedMark {
		return f, nil // the file is not sealed
	}

	key, err := s.findKey(name, head)
	if err != nil {
		return nil, err
	}

	sealed, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}

	size, err := sio.DecryptedSize(uint64(sealed) - uint64(headSize))
	if err != nil {
		return nil, errCut
	}

	o := &sealedReader{file: f, key: key}
	o.pieces = pieces{size: int64(size), piece: sealedPiece, load: o.loadPiece}
	return o, nil
}

var errCut = errors.New("the encrypted file is incomplete")

// findKey returns the key of the file with this name and head.
func (s *Sealed) findKey(name string, head []byte) ([]byte, error) {
	wanted := head[len(sealedMark):][:fingerprintSize]
	salt := head[headSize-saltSize:]
	for _, secret := range s.secrets() {
		if bytes.Equal(fingerprint(secret), wanted) {
			return deriveKey(secret, salt, name)
		}
	}
	return nil, errors.New("it is encrypted with a master key that this installation never had")
}

// fingerprint returns bytes that identify a secret without revealing it.
func fingerprint(secret [sha256.Size]byte) []byte {
	sum := sha256.Sum256(append([]byte("selvage media "), secret[:]...))
	return sum[:fingerprintSize]
}

func deriveKey(secret [sha256.Size]byte, salt []byte, name string) ([]byte, error) {
	key, err := hkdf.Key(sha256.New, secret[:], salt, "selvage media "+name, 32)
	if err != nil {
		return nil, fmt.Errorf("deriving the key of a file: %w", err)
	}
	return key, nil
}

func newCipher(key []byte, from int64) sio.Config {
	return sio.Config{
		MinVersion:     sio.Version20,
		MaxVersion:     sio.Version20,
		CipherSuites:   []byte{sio.AES_256_GCM},
		Key:            key,
		SequenceNumber: uint32(from),
	}
}

// encrypt writes the head of a file to w, and returns a writer that encrypts. Closing the writer
// completes the file.
func (s *Sealed) encrypt(name string, w io.Writer) (io.WriteCloser, error) {
	secret := s.secrets()[0]
	salt := make([]byte, saltSize)
	_, _ = rand.Read(salt) // never fails
	key, err := deriveKey(secret, salt, name)
	if err != nil {
		return nil, err
	}

	head := bytes.Join([][]byte{[]byte(sealedMark), fingerprint(secret), salt}, nil)
	if _, err := w.Write(head); err != nil {
		return nil, err
	}

	enc, err := sio.EncryptWriter(onlyWriter{w}, newCipher(key, 0))
	if err != nil {
		return nil, fmt.Errorf("encrypting a file: %w", err)
	}
	return enc, nil
}

func (s *Sealed) sealPart(name string, content []byte) ([]byte, error) {
	var sealed bytes.Buffer
	w, err := s.encrypt(name, &sealed)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return sealed.Bytes(), nil
}
