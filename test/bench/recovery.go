package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/quorate/quorate/test/bench/load"
)

// fillBytes is how much log recovery is measured with.
const fillBytes = 1 << 30

func blocks(info fs.FileInfo) int64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Blocks * 512
	}
	return info.Size()
}

// fillLog sends batches until about so many bytes of records are stored.
func fillLog(ctx context.Context, p *remotingSystem, bytes int64) error {
	for sent := int64(0); sent < bytes; {
		r, err := p.Send(ctx, load.Shape{Connections: 2, Window: 8}, 4096, 32, time.Second)
		if err != nil {
			return err
		}
		if r.Acked == 0 {
			return fmt.Errorf("filling the log: %d refused: %s", r.Refused, r.Refusal)
		}
		sent += r.Acked * 32 * 4200
	}
	return nil
}

// restart measures the time to ready of one more start on the same files.
func (p *remotingSystem) restart(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, bootTimeout)
	defer cancel()
	err := p.standalone.Restart(ctx)
	p.main = p.standalone.Process
	return p.standalone.Ready, err
}

func restartClean(ctx context.Context, c *comparison) error {
	return c.with(ctx, false, nil, func(p *remotingSystem) error {
		for _, size := range []int64{fillBytes / 8, fillBytes} {
			if err := fillLog(ctx, p, size); err != nil {
				return err
			}
			began := time.Now()
			if err := p.main.Stop(time.Minute); err != nil {
				return err
			}
			stopped := time.Since(began)
			took, err := p.restart(ctx)
			if err != nil {
				return err
			}
			c.say("%.2f GB more: stop %.2f s, start to ready %.2f s", float64(size)/1e9, stopped.Seconds(), took.Seconds())
		}
		return nil
	})
}

func restartKilled(ctx context.Context, c *comparison) error {
	return c.with(ctx, false, nil, func(p *remotingSystem) error {
		for _, size := range []int64{fillBytes / 8, fillBytes} {
			if err := fillLog(ctx, p, size); err != nil {
				return err
			}
			p.main.Kill()
			took, err := p.restart(ctx)
			if err != nil {
				return err
			}
			c.say("killed after %.2f GB more: start to ready %.2f s", float64(size)/1e9, took.Seconds())
		}
		return nil
	})
}

func rebuild(ctx context.Context, c *comparison) error {
	return c.with(ctx, false, nil, func(p *remotingSystem) error {
		if err := fillLog(ctx, p, fillBytes); err != nil {
			return err
		}
		if err := p.main.Stop(time.Minute); err != nil {
			return err
		}
		store, err := findStore(p.data)
		if err != nil {
			return err
		}
		err = errors.Join(os.RemoveAll(filepath.Join(store, "consumequeue")), os.RemoveAll(filepath.Join(store, "index")),
			os.RemoveAll(filepath.Join(store, "checkpoint")))
		if err != nil {
			return err
		}
		took, err := p.restart(ctx)
		if err != nil {
			return err
		}
		c.say("%.2f GB without queues: start to ready %.2f s, %.0f MB/s", float64(fillBytes)/1e9, took.Seconds(), fillBytes/1e6/took.Seconds())
		return nil
	})
}

// findStore is the folder that has the log.
func findStore(data string) (store string, err error) {
	err = filepath.WalkDir(data, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "commitlog" {
			store = filepath.Dir(path)
			return fs.SkipAll
		}
		return err
	})
	if err == nil && store == "" {
		err = fmt.Errorf("no commitlog below %s", data)
	}
	return store, err
}
