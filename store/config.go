package store

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quorate/quorate/internal/vfs"
	"github.com/quorate/quorate/store/commitlog"
	"github.com/quorate/quorate/store/consumequeue"
	"github.com/quorate/quorate/store/index"
)

// Config of a store; leaf fields carry RocketMQ's key.
type Config struct {
	RootDir              string `conf:"storePathRootDir"`
	CommitLogDir         string `conf:"storePathCommitLog"` // "": commitlog under RootDir
	CommitLogFileSize    int64  `conf:"mappedFileSizeCommitLog" bounds:"4096..2147483647"`
	ConsumeQueueFileSize int64  `conf:"mappedFileSizeConsumeQueue" bounds:"20..2147483647"`
	MaxMessageSize       int    `conf:"maxMessageSize" bounds:"1..1073741824"`

	SyncFlush          bool          // flushDiskType=SYNC_FLUSH
	FlushInterval      time.Duration `conf:"flushIntervalCommitLog,ms" bounds:"1..3600000"`
	FlushQueueInterval time.Duration `conf:"flushIntervalConsumeQueue,ms" bounds:"1..3600000"`
	CheckCRC           bool          `conf:"checkCRCOnRecover"`

	IndexEnable  bool  `conf:"messageIndexEnable"`
	IndexSlots   int   `conf:"maxHashSlotNum" bounds:"1..500000000"`
	IndexEntries int32 `conf:"maxIndexNum" bounds:"2..100000000"`
	IndexTags    bool  // tags are keys, too, as since RocketMQ 5.5
	QueryMax     int   // the most that one query returns, whatever is asked; the broker's own limit is lower and may change

	// DelayLevels are the delays of messageDelayLevel, level 1 first: the tags code of a delayed message is its time.
	DelayLevels []time.Duration

	Read      ReadConfig
	Retention RetentionConfig

	// HoldConfirmed leaves Confirmed at what the checkpoint covers when the store opens: a rule from outside (replication)
	// decides about the rest. Otherwise everything in the recovered log counts as confirmed, for one broker is alone.
	HoldConfirmed bool

	// CheckpointInterval and CheckpointBytes bound what a start after a kill reads again.
	CheckpointInterval time.Duration
	CheckpointBytes    int64
	OpenFilesMax       int // consume queue files kept open

	Now func() time.Time
	// Boot names the boot of the machine, 0 when unknown: a kill under the same boot has lost nothing that was written.
	Boot uint64
	// FS is where the store lives; nil is the machine's file system, with a lock against other processes.
	FS vfs.FS
}

// ReadConfig bounds what one Get returns.
type ReadConfig struct {
	MemoryBytesMax int   `conf:"maxTransferBytesOnMessageInMemory" bounds:"1..2147483647"`
	MemoryCountMax int   `conf:"maxTransferCountOnMessageInMemory" bounds:"1..2147483647"`
	DiskBytesMax   int   `conf:"maxTransferBytesOnMessageInDisk" bounds:"1..2147483647"`
	DiskCountMax   int   `conf:"maxTransferCountOnMessageInDisk" bounds:"1..2147483647"`
	MemoryRatio    int   `conf:"accessMessageInMemoryMaxRatio" bounds:"0..100"` // percent of the machine's memory
	ScanBytesMax   int   `conf:"maxFilterMessageSize" bounds:"20..2147483647"`  // of consume queue, per Get
	PhysicalMemory int64 // of the machine, in bytes
}

// RetentionConfig says when old data goes and when writes stop. Ratios are percent of the disk.
type RetentionConfig struct {
	DeleteWhen       string        `conf:"deleteWhen"`
	ReservedHours    int           `conf:"fileReservedTime" bounds:"0..876000"`
	Interval         time.Duration `conf:"cleanResourceInterval,ms" bounds:"100..86400000"`
	DeleteInterval   time.Duration `conf:"deleteCommitLogFilesInterval,ms" bounds:"0..86400000"`
	DeleteBatchMax   int           `conf:"deleteFileBatchMax" bounds:"1..1000000"`
	DiskMaxUsedRatio int           `conf:"diskMaxUsedSpaceRatio" bounds:"10..95"`
	CleanForcibly    bool          `conf:"cleanFileForciblyEnable"`
	ForceRatio       int           `conf:"diskSpaceCleanForciblyRatio" bounds:"10..99"`
	WarnRatio        int           `conf:"diskSpaceWarningLevelRatio" bounds:"10..100"`
}

// DefaultConfig is RocketMQ's where it has the key.
func DefaultConfig() Config {
	log, queues, keys := commitlog.DefaultConfig(), consumequeue.DefaultConfig(), index.DefaultConfig()
	home, err := os.UserHomeDir()
	if err != nil {
		home = "."
	}
	return Config{
		RootDir:           path.Join(home, "store"),
		CommitLogFileSize: log.FileSize, ConsumeQueueFileSize: queues.FileSize, MaxMessageSize: log.MaxMessageSize,
		FlushInterval: log.FlushInterval, FlushQueueInterval: time.Second, CheckCRC: true,
		IndexEnable: true, IndexSlots: keys.Slots, IndexEntries: keys.Entries, IndexTags: true, QueryMax: 65536,
		DelayLevels: []time.Duration{
			time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 3 * time.Minute,
			4 * time.Minute, 5 * time.Minute, 6 * time.Minute, 7 * time.Minute, 8 * time.Minute, 9 * time.Minute, 10 * time.Minute,
			20 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour,
		},
		Read: ReadConfig{
			MemoryBytesMax: 256 << 10, MemoryCountMax: 32, DiskBytesMax: 64 << 10, DiskCountMax: 8,
			MemoryRatio: 40, ScanBytesMax: 16000, PhysicalMemory: physicalMemory(),
		},
		Retention: RetentionConfig{
			DeleteWhen: "04", ReservedHours: 72, Interval: 10 * time.Second, DeleteInterval: 100 * time.Millisecond,
			DeleteBatchMax: 10, DiskMaxUsedRatio: 75, CleanForcibly: true, ForceRatio: 85, WarnRatio: 90,
		},
		CheckpointInterval: 5 * time.Second, CheckpointBytes: 48 << 20, OpenFilesMax: queues.OpenFilesMax,
		Now: time.Now, Boot: machineBoot(),
	}
}

// Validate checks each field and their relations.
func (c Config) Validate() error {
	if c.RootDir == "" {
		return errors.New("storePathRootDir is empty")
	}
	if c.Now == nil {
		return errors.New("store: no clock")
	}
	if c.FlushQueueInterval <= 0 || c.CheckpointInterval <= 0 || c.CheckpointBytes <= 0 {
		return errors.New("flushIntervalConsumeQueue, CheckpointInterval and CheckpointBytes must be above 0")
	}
	if c.QueryMax < 1 {
		return fmt.Errorf("query limit %d is below 1", c.QueryMax)
	}
	r := c.Read
	if min(r.MemoryBytesMax, r.MemoryCountMax, r.DiskBytesMax, r.DiskCountMax, r.ScanBytesMax) < 1 || r.MemoryRatio < 0 || r.MemoryRatio > 100 {
		return errors.New("store: limits of reads must be above 0, accessMessageInMemoryMaxRatio within 0..100")
	}
	if err := c.logConfig().Validate(); err != nil {
		return err
	}
	if err := c.queueConfig(vfs.OS()).Validate(); err != nil {
		return err
	}
	if err := c.indexConfig(vfs.OS()).Validate(); err != nil {
		return err
	}
	return c.Retention.Validate()
}

// Validate checks each field and their relations.
func (r RetentionConfig) Validate() error {
	if _, err := parseHours(r.DeleteWhen); err != nil {
		return err
	}
	switch {
	case r.ReservedHours < 0 || r.Interval <= 0 || r.DeleteInterval < 0 || r.DeleteBatchMax < 1:
		return errors.New("fileReservedTime, cleanResourceInterval, deleteCommitLogFilesInterval, deleteFileBatchMax: out of range")
	case r.DiskMaxUsedRatio < 1 || r.DiskMaxUsedRatio > r.ForceRatio || r.ForceRatio > r.WarnRatio || r.WarnRatio > 100:
		return fmt.Errorf("diskMaxUsedSpaceRatio=%d, diskSpaceCleanForciblyRatio=%d, diskSpaceWarningLevelRatio=%d: must rise, within 1..100",
			r.DiskMaxUsedRatio, r.ForceRatio, r.WarnRatio)
	}
	return nil
}

// parseHours reads deleteWhen: hours of the day, separated by ";".
func parseHours(s string) ([]int, error) {
	var hours []int
	for part := range strings.SplitSeq(s, ";") {
		h, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || h < 0 || h > 23 {
			return nil, fmt.Errorf("deleteWhen: %q is not an hour of the day, 00..23", part)
		}
		hours = append(hours, h)
	}
	return hours, nil
}

func (c Config) path(name string) string { return path.Join(c.RootDir, name) }

func (c Config) logConfig() commitlog.Config {
	log := commitlog.DefaultConfig()
	log.Dir = c.CommitLogDir
	if log.Dir == "" {
		log.Dir = c.path("commitlog")
	}
	log.FileSize, log.MaxMessageSize = c.CommitLogFileSize, c.MaxMessageSize
	log.ZeroAhead = min(log.ZeroAhead, c.CommitLogFileSize)
	log.FlushInterval, log.SyncFlush, log.Now = c.FlushInterval, c.SyncFlush, c.Now
	return log
}

func (c Config) queueConfig(fsys vfs.FS) consumequeue.Config {
	queues := consumequeue.DefaultConfig()
	queues.FS, queues.Dir, queues.OpenFilesMax = fsys, c.path("consumequeue"), c.OpenFilesMax
	// Whole units, as RocketMQ rounds it.
	queues.FileSize = (c.ConsumeQueueFileSize + consumequeue.UnitSize - 1) / consumequeue.UnitSize * consumequeue.UnitSize
	return queues
}

func (c Config) indexConfig(fsys vfs.FS) index.Config {
	keys := index.DefaultConfig()
	keys.FS, keys.Dir, keys.Slots, keys.Entries, keys.Now = fsys, c.path("index"), c.IndexSlots, c.IndexEntries, c.Now
	return keys
}

func physicalMemory() int64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return math.MaxInt64 / 100 // everything counts as in memory
	}
	return int64(info.Totalram) * int64(info.Unit)
}

// machineBoot reads the boot id of the kernel.
func machineBoot() uint64 {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return 0
	}
	raw, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(string(b)), "-", ""))
	if err != nil {
		return 0
	}
	boot := uint64(0)
	for _, c := range raw[:min(len(raw), 8)] {
		boot = boot<<8 | uint64(c)
	}
	return boot
}
