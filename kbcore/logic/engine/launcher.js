// Starts the WebAssembly build of SWI-Prolog in node and runs the engine of the workspace in it.
//
// node launcher.js PACKAGE_FOLDER PROLOG_FOLDER STACK PREPARE serve          loads the Prolog files, and serves
// node launcher.js PACKAGE_FOLDER PROLOG_FOLDER STACK PREPARE save           loads them, and writes a saved state to
//                                                                            standard output
// node launcher.js PACKAGE_FOLDER PROLOG_FOLDER STACK PREPARE serve STATE    starts a saved state, which serves
//
// STACK is the option that limits the stacks, PREPARE the goal that makes an engine of the Prolog files.
//
// Standard input is read when Prolog asks for it: a read returns what has arrived, and waits only where nothing has. The
// package reads it otherwise, and fails on a pipe that is open and empty. Output is written at once (writeSync), so that
// nothing is lost when the process is killed.
//
// The stack of the package's C code has 64 KiB and no guard: what is nested deeply overwrites other memory there, and the
// engine hangs or answers wrongly. It gets a larger one, so that the stack of node ends first, which is an error: the
// process ends with the status 71 then.
'use strict';
const fs = require('fs');
const path = require('path');

const [packageFolder, prologFolder, stack, prepare, action, state] = process.argv.slice(2);
const PLAIN = ['-q', '-f', 'none', '--no-packs', stack];
const STATE = '/kb/saved.state';
const STACK_BYTES = 64 * 1024 * 1024;  // of address space: what is not used takes no memory
const SET_STACK = 're';                // the name under which this version of the package exports stackRestore
const NESTED_TOO_DEEPLY = 71;

function writeAll(descriptor, bytes) {
  let done = 0;
  while (done < bytes.length) {
    try {
      done += fs.writeSync(descriptor, bytes, done);
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error;
    }
  }
}

// What a descriptor of Prolog's does when it is read and written. `memory` is Prolog's own, as bytes.
const operations = {
  read(stream, memory, offset, length) {
    return fs.readSync(0, memory, offset, length, null);
  },
  write(stream, memory, offset, length) {
    if (stream.fd === 1) writeAll(1, memory.subarray(offset, offset + length));
    return length;
  },
};

function copyFiles(FS) {
  FS.mkdir('/kb');
  if (state) {
    FS.writeFile(STATE, fs.readFileSync(state), { canOwn: true });
    return;
  }
  for (const name of fs.readdirSync(prologFolder)) {
    if (name.endsWith('.pl')) FS.writeFile('/kb/' + name, fs.readFileSync(path.join(prologFolder, name)));
  }
}

async function main() {
  const packaged = (name) => path.join(packageFolder, 'dist', 'swipl', name);
  const start = require(packaged('swipl.js'));
  let exported;
  const module = await start({
    // A saved state serves as soon as it is loaded: this call returns only where there is none.
    arguments: state ? ['-x', STATE, ...PLAIN] : PLAIN,
    locateFile: packaged,
    instantiateWasm(imports, done) {
      WebAssembly.instantiate(fs.readFileSync(packaged('swipl-web.wasm')), imports).then(({ instance }) => {
        exported = instance.exports;
        done(instance);
      }).catch(fail);
      return {};
    },
    preRun: [(instance) => {
      exported[SET_STACK]((instance._malloc(STACK_BYTES) + STACK_BYTES) & -16);  // its C code takes it for aligned
      instance.FS.init(() => null, () => {}, () => {});
      for (const stream of instance.FS.streams.slice(0, 3)) stream.stream_ops = { ...stream.stream_ops, ...operations };
      copyFiles(instance.FS);
    }],
  });
  const loaded = module.prolog.call(`consult('/kb/server.pl'), ${prepare}`);
  if (!loaded) process.exit(70);
  if (action === 'serve') {
    module.prolog.call('kb_server:serve');
  } else if (module.prolog.call(`kb_server:save('${STATE}')`)) {
    writeAll(1, module.FS.readFile(STATE));
  } else {
    process.exit(70);
  }
}

function fail(error) {
  if (error && error.name === 'ExitStatus') process.exit(error.status);
  process.stderr.write(String(error) + '\n');
  process.exit(error instanceof RangeError ? NESTED_TOO_DEEPLY : 70);
}

main().catch(fail);
