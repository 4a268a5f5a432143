package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"

	"github.com/quorate/quorate/ha"
)

// ErrBadEpochs is an epoch file that is not whole.
var ErrBadEpochs = errors.New("checkpoint: bad epoch file")

// epochsMax bounds the entries of a file: what one handshake of RocketMQ carries.
const epochsMax = 1000

// EncodeEpochs is RocketMQ's epochFileCheckpoint (CheckpointFile, EpochEntry): the number of entries, the CRC-32 of the rest
// without its sign bit, and one line `epoch-startOffset` per entry, oldest first.
func EncodeEpochs(h ha.History) []byte {
	entries := h.Entries()
	var lines bytes.Buffer
	for _, e := range entries {
		fmt.Fprintf(&lines, "%d-%d\n", e.Epoch, e.Start)
	}
	crc := crc32.ChecksumIEEE(lines.Bytes()) & 0x7FFFFFFF
	return fmt.Appendf(nil, "%d\n%d\n%s", len(entries), crc, lines.Bytes())
}

// DecodeEpochs reads an epoch file. A checksum of 0 is not checked, as in RocketMQ. Text of any other system's line ends is
// taken too.
func DecodeEpochs(b []byte) (ha.History, error) {
	text := strings.ReplaceAll(string(b), "\r\n", "\n")
	first, rest, ok := strings.Cut(text, "\n")
	second, body, ok2 := strings.Cut(rest, "\n")
	count, err := strconv.Atoi(first)
	if !ok || !ok2 || err != nil || count < 0 || count > epochsMax {
		return ha.History{}, fmt.Errorf("%w: it begins with %q", ErrBadEpochs, first)
	}
	crc, err := strconv.ParseUint(second, 10, 31)
	if err != nil {
		return ha.History{}, fmt.Errorf("%w: checksum %q", ErrBadEpochs, second)
	}
	if crc != 0 && !sumFits(b, body, uint32(crc)) {
		return ha.History{}, fmt.Errorf("%w: the checksum does not fit", ErrBadEpochs)
	}
	entries := make([]ha.EpochEntry, 0, count)
	for line := range strings.Lines(body) {
		e, err := parseEpoch(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return ha.History{}, err
		}
		entries = append(entries, e)
	}
	if len(entries) != count {
		return ha.History{}, fmt.Errorf("%w: %d entries, %d are announced", ErrBadEpochs, len(entries), count)
	}
	h, err := ha.NewHistory(entries)
	if err != nil {
		return ha.History{}, errors.Join(ErrBadEpochs, err)
	}
	return h, nil
}

// sumFits checks the sum over the lines as they stand in the file, whose line ends it covers.
func sumFits(raw []byte, body string, crc uint32) bool {
	if crc32.ChecksumIEEE([]byte(body))&0x7FFFFFFF == crc {
		return true
	}
	parts := bytes.SplitN(raw, []byte("\n"), 3)
	return len(parts) == 3 && crc32.ChecksumIEEE(parts[2])&0x7FFFFFFF == crc
}

func parseEpoch(line string) (ha.EpochEntry, error) {
	left, right, ok := strings.Cut(line, "-")
	epoch, err := strconv.ParseInt(left, 10, 32)
	start, err2 := strconv.ParseInt(right, 10, 64)
	if !ok || err != nil || err2 != nil {
		return ha.EpochEntry{}, fmt.Errorf("%w: line %q", ErrBadEpochs, line)
	}
	return ha.EpochEntry{Epoch: ha.MasterEpoch(epoch), Start: start}, nil
}
