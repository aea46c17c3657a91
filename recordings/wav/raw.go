package wav

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"strconv"
	"strings"
)

// A rawFormat is the codec and the sample rate of audio without a header.
type rawFormat struct {
	codec string
	rate  int
}

// rawExtensions maps the extensions of files without a header to their formats. Asterisk and
// FreeSWITCH use these extensions. All of these files have one channel.
var rawExtensions = map[string]rawFormat{
	"al":    {"alaw", 8000},
	"alaw":  {"alaw", 8000},
	"pcma":  {"alaw", 8000},
	"ul":    {"mulaw", 8000},
	"ulaw":  {"mulaw", 8000},
	"mulaw": {"mulaw", 8000},
	"pcmu":  {"mulaw", 8000},

	"g722": {"g722", 16000},
	"gsm":  {"gsm", 8000},

	"raw":    {"pcm_s16le", 8000},
	"sln":    {"pcm_s16le", 8000},
	"sln8":   {"pcm_s16le", 8000},
	"sln12":  {"pcm_s16le", 12000},
	"sln16":  {"pcm_s16le", 16000},
	"sln24":  {"pcm_s16le", 24000},
	"sln32":  {"pcm_s16le", 32000},
	"sln44":  {"pcm_s16le", 44100},
	"sln48":  {"pcm_s16le", 48000},
	"sln96":  {"pcm_s16le", 96000},
	"sln192": {"pcm_s16le", 192000},
	"r8":     {"pcm_s16le", 8000},
	"r16":    {"pcm_s16le", 16000},
	"r24":    {"pcm_s16le", 24000},
	"r32":    {"pcm_s16le", 32000},
}

// rawTypes maps audio/ subtypes to formats. The rate applies if the type contains none. It is 0 if
// the type must contain a rate.
var rawTypes = map[string]rawFormat{
	"basic": {"mulaw", 8000},
	"pcmu":  {"mulaw", 8000},
	"pcma":  {"alaw", 8000},
	"gsm":   {"gsm", 8000},
	"x-gsm": {"gsm", 8000},
	"g722":  {"g722", 16000},
	"x-sln": {"pcm_s16le", 8000},
	"l8":    {"pcm_u8", 0},
	"l16":   {"pcm_s16be", 0},
	"l24":   {"pcm_s24be", 0},
}

// ParseRaw returns the facts of a file without a header. kind is an extension such as ".sln16", or
// a media type such as "audio/L16;rate=16000;channels=2". Samples of audio/L16 are big-endian, and
// samples of audio/x-sln are little-endian. If the codec of kind is unknown, ParseRaw returns
// [ErrNotWAV].
func ParseRaw(kind string, r io.ReaderAt, size int64) (Facts, error) {
	codec, rate, channels, err := rawKind(kind)
	if err != nil {
		return Facts{}, err
	}
	f, err := Headerless(codec, rate, channels, size)
	if err != nil {
		return Facts{}, err
	}
	if codec == "gsm" {
		if err := checkGSM(r, f); err != nil {
			return Facts{}, err
		}
	}
	return f, nil
}

// IsRaw reports whether [ParseRaw] knows kind, which is an extension or a media type.
func IsRaw(kind string) bool {
	_, _, _, err := rawKind(kind)
	return !errors.Is(err, ErrNotWAV)
}

// rawKind parses an extension or a media type.
func rawKind(kind string) (codec string, rate, channels int, err error) {
	extension := strings.ToLower(strings.TrimPrefix(kind, "."))
	if found, ok := rawExtensions[extension]; ok {
		return found.codec, found.rate, 1, nil
	}

	unknown := fmt.Errorf("%w, and %q does not name a codec", ErrNotWAV, kind)
	mediaType, params, err := mime.ParseMediaType(kind)
	if err != nil {
		return "", 0, 0, unknown
	}
	subtype, isAudio := strings.CutPrefix(mediaType, "audio/")
	found, known := rawTypes[subtype]
	if !isAudio || !known {
		return "", 0, 0, unknown
	}
	if found.codec == "g722" || found.codec == "gsm" { // RFC 3551 gives G.722 the rate 8000
		return found.codec, found.rate, 1, nil
	}

	rate, channels = found.rate, 1
	for param, value := range map[string]*int{"rate": &rate, "channels": &channels} {
		text, ok := params[param]
		if !ok {
			continue
		}
		*value, err = strconv.Atoi(text)
		if err != nil {
			return "", 0, 0, broken("%s=%s in its type is not a number", param, text)
		}
	}
	return found.codec, rate, channels, nil
}

// Headerless returns the facts of a file of size bytes that contains only audio with this codec. If
// the codec needs a header, it returns [ErrCodec].
func Headerless(codec string, rate, channels int, size int64) (Facts, error) {
	f := Facts{Format: Format{Codec: codec, SampleRate: rate, Channels: channels}, Length: size}
	if err := f.Check(); err != nil {
		return Facts{}, err
	}

	f.BlockFrames = 1
	switch codec {
	case "mulaw", "alaw", "pcm_u8":
		f.Bits = 8
	case "pcm_s16le", "pcm_s16be":
		f.Bits = 16
	case "pcm_s24be":
		f.Bits = 24
	case "gsm":
		f.BlockAlign, f.BlockFrames = gsmBytes, gsmFrame
	case "g722":
		f.BlockAlign, f.BlockFrames = 1, 2
	default:
		return Facts{}, fmt.Errorf("%w: %s without a header", ErrCodec, codec)
	}

	if f.BlockFrames == 1 {
		f.ValidBits = f.Bits
		f.BlockAlign = f.Channels * f.Bits / 8
	} else if channels != 1 {
		return Facts{}, broken("%s has one channel, not %d", codec, channels)
	}

	f.count()
	return f, nil
}

// checkGSM checks the first GSM frames, which must all begin with the same bits.
func checkGSM(r io.ReaderAt, f Facts) error {
	var first [1]byte
	for i := range min(int64(16), f.Length/gsmBytes) {
		if err := readAt(r, first[:], i*gsmBytes); err != nil {
			return fmt.Errorf("reading audio: %w", err)
		}
		if first[0]>>4 != gsmMagic {
			return broken("frame %d is not GSM", i+1)
		}
	}
	return nil
}
